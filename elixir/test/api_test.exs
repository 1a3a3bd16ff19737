defmodule CallbackThread.ApiTest do
  use ExUnit.Case, async: true
  import CallbackThread.Helpers
  alias CallbackThread, as: CT

  describe "spawning" do
    test "the raw message runs the function with its id" do
      {receptor, see} = {receptor(), seen_reporter()}
      Kernel.send(receptor, {:spawn, fn id -> see.({id, CT.current()}) end})
      assert [{id, id}] = collect(1)
      assert CT.alive?(id) == false
    end

    test "a raw request that is not a function is ignored" do
      {receptor, see} = {receptor(), seen_reporter()}
      Kernel.send(receptor, {:spawn, :not_a_function})
      Kernel.send(receptor, :something_else)
      Kernel.send(receptor, {:spawn, fn _ -> see.(1) end})
      assert collect(1) == [1]
    end

    test "a callback takes its id or nothing" do
      {receptor, see} = {receptor(), seen_reporter()}
      {:ok, with_id} = CT.spawn(receptor, fn id -> see.(id) end)
      assert collect(1) == [with_id]
      {:ok, without} = CT.spawn(receptor, fn -> see.(CT.current()) end)
      assert collect(1) == [without]
      assert CT.current() == nil
    end

    test "under a name, in a supervision tree" do
      start_supervised!({CallbackThread.Receptor, name: :receptor_with_a_name, workers: 1})
      assert {:ok, 5} = CT.call(:receptor_with_a_name, fn -> {:reply, 5} end)
      assert CT.count(:receptor_with_a_name) == 0
    end

    test "spawning without a receptor is an error" do
      receptor = receptor()
      CT.stop(receptor)
      assert {:error, _} = CT.spawn(receptor, fn -> 1 end)
      assert {:error, :no_such_receptor} = CT.try_spawn(:nobody_has_this_name, fn -> 1 end)
      assert {:error, :no_such_receptor} = CT.spawn(self(), fn -> 1 end)
    end

    test "the workers take turns" do
      receptor = receptor(workers: 3)

      {:ok, ids} =
        {:ok,
         for(_ <- 1..9, do: elem(CT.spawn(receptor, fn -> {:receive, fn _ -> 1 end} end), 1))}

      by_worker = Enum.group_by(ids, &elem(&1, 1))
      assert map_size(by_worker) == 3
      assert CT.stats(receptor).workers == 3
      assert CT.count(receptor) == 9
    end
  end

  describe "replies" do
    test "several, and then the end" do
      {:ok, id, ref} =
        CT.spawn_reply(receptor(), fn ->
          {:reply, 1, {:reply, 2, {:after, 1, fn -> {:reply, 3} end}}}
        end)

      assert {CT.await(ref), CT.await(ref), CT.await(ref)} == {{:ok, 1}, {:ok, 2}, {:ok, 3}}
      refute_receive {:DOWN, ^ref, _, _, _}, 20
      assert CT.send(id, 1) == {:error, :no_such_thread}
    end

    test "a thread that ends without a reply reports its reason" do
      receptor = receptor()
      assert CT.call(receptor, fn -> :whatever end) == {:error, :normal}

      assert {:error, {%RuntimeError{message: "no"}, _stack}} =
               CT.call(receptor, fn -> raise "no" end)

      assert {:error, {:bad_return, {:after, :soon, _}}} =
               CT.call(receptor, fn -> {:after, :soon, fn -> 1 end} end)

      # A reply does not hide a later failure.
      {:ok, _, ref} =
        CT.spawn_reply(receptor, fn -> {:reply, 1, {:after, 1, fn -> exit(:later) end}} end)

      assert {CT.await(ref), CT.await(ref)} == {{:ok, 1}, {:error, :later}}
    end

    test "a call that takes too long is cancelled" do
      receptor = receptor()
      assert CT.call(receptor, fn -> {:receive, fn _ -> 1 end} end, 20) == {:error, :timeout}
      assert CT.count(receptor) == 0
      # Later replies are dropped.
      assert CT.call(receptor, fn -> {:reply, 1, {:reply, 2}} end) == {:ok, 1}
      refute_receive _, 20
    end
  end

  describe "messages" do
    test "of one sender arrive in order, also those sent before the thread receives" do
      {receptor, see} = {receptor(), seen_reporter()}
      {:ok, id} = CT.spawn(receptor, fn -> {:after, 20, fn -> {:receive, echo(see)} end} end)
      for i <- 1..500, do: assert(CT.send(id, i) == :ok)
      for i <- 501..1_000, do: CT.cast(id, i)
      assert collect(1_000) == Enum.to_list(1..1_000)
      wait_for_stats(receptor, %{inboxes: 0})
    end

    defp echo(see) do
      fn message ->
        see.(message)
        {:receive, echo(see)}
      end
    end

    test "each return value may replace the handler" do
      {receptor, see} = {receptor(), seen_reporter()}
      second = fn message, id -> see.({:second, message, id}) end

      {:ok, id} =
        CT.spawn(receptor, fn ->
          {:receive, fn m -> see.({:first, m}) && {:receive, second} end}
        end)

      CT.send(id, 1)
      CT.send(id, 2)
      assert collect(2) == [{:first, 1}, {:second, 2, id}]
    end

    test "a handler with a timeout: the message or the timeout, never both" do
      {receptor, see} = {receptor(), seen_reporter()}
      wait = fn ms -> {:receive, fn m -> see.({:got, m}) end, ms, fn -> see.(:timeout) end} end
      began = now()
      {:ok, late} = CT.spawn(receptor, fn -> wait.(50) end)
      assert collect(1) == [:timeout]
      assert now() - began >= 50
      assert CT.send(late, 1) == {:error, :no_such_thread}
      {:ok, early} = CT.spawn(receptor, fn -> wait.(2_000) end)
      assert CT.send(early, 2) == :ok
      assert collect(1) == [{:got, 2}]
      refute_receive {:seen, _}, 2_200
    end

    test "a thread may send to itself and to others of its worker" do
      {receptor, see} = {receptor(workers: 1), seen_reporter()}
      {:ok, other} = CT.spawn(receptor, fn -> {:receive, see} end)

      CT.spawn(receptor, fn id ->
        CT.send(other, :to_other)
        CT.send(id, :to_self)
        {:receive, see}
      end)

      assert Enum.sort(collect(2)) == [:to_other, :to_self]
    end

    test "a full inbox refuses and loses nothing that it accepted" do
      {receptor, see} = {receptor(max_inbox: 10), seen_reporter()}
      {:ok, id} = CT.spawn(receptor, fn -> {:after, 2_000, fn -> {:receive, echo(see)} end} end)

      assert for(i <- 1..12, do: CT.send(id, i)) ==
               List.duplicate(:ok, 10) ++ List.duplicate({:error, :full}, 2)

      assert collect(10) == Enum.to_list(1..10)
      wait_for_stats(receptor, %{dropped: 2})
      assert CT.send(id, 13) == :ok
      assert collect(1) == [13]
    end

    test "to unknown ids are rejected" do
      receptor = receptor(workers: 1)
      {:ok, id} = CT.spawn(receptor, fn -> :done end)
      {:callback_thread, worker, key} = id
      eventually(fn -> not CT.alive?(id) end)

      for unknown <- [
            id,
            {:callback_thread, worker, key + 1},
            {:callback_thread, worker, 123_456_789_012}
          ] do
        assert CT.send(unknown, :x) == {:error, :no_such_thread}
        assert CT.cast(unknown, :x) == :ok
        assert CT.cancel(unknown) == {:error, :no_such_thread}
        assert CT.monitor(unknown) == {:error, :no_such_thread}
        assert CT.alive?(unknown) == false
      end

      dead = spawn(fn -> :ok end)
      assert CT.send({:callback_thread, dead, 0}, :x) == {:error, :no_such_thread}
      Kernel.send(worker, :garbage)
      assert CT.call(receptor, fn -> {:reply, :fine} end) == {:ok, :fine}
      assert Process.alive?(worker)
    end

    test "a stale id does not refer to the thread now in its slot" do
      {receptor, see} = {receptor(workers: 1), seen_reporter()}
      {:ok, keeper} = CT.spawn(receptor, fn -> {:receive, see} end)

      stale =
        for _ <- 1..300 do
          {:ok, id} = CT.spawn(receptor, fn -> :done end)
          eventually(fn -> not CT.alive?(id) end)
          id
        end

      {:ok, present} = CT.spawn(receptor, fn -> {:receive, see} end)
      # There is still only one chunk, so the slot has been reused.
      wait_for_stats(receptor, %{chunks: 1})
      for id <- stale, do: assert(CT.send(id, :wrong) == {:error, :no_such_thread})
      for id <- stale, do: assert(CT.cancel(id) == {:error, :no_such_thread})
      CT.send(present, :right)
      CT.send(keeper, :right)
      assert collect(2) == [:right, :right]
    end
  end

  describe "ends" do
    test "cancel: while waiting for a timer, for a message, and with messages kept" do
      {receptor, see} = {receptor(), seen_reporter()}
      {:ok, timer} = CT.spawn(receptor, fn -> {:after, 2_000, fn -> see.(:fired) end} end)
      {:ok, handler} = CT.spawn(receptor, fn -> {:receive, fn _ -> see.(:handled) end} end)
      eventually(fn -> CT.stats(receptor).rows == 2 end)
      CT.send(timer, :kept)
      {:ok, ref} = CT.monitor(timer)
      assert {CT.cancel(timer), CT.cancel(handler)} == {:ok, :ok}
      assert_receive {:DOWN, ^ref, :callback_thread, ^timer, :cancelled}, 5_000
      assert CT.cancel(timer) == {:error, :no_such_thread}
      refute_receive {:seen, _}, 2_200

      wait_for_stats(receptor, %{
        rows: 0,
        alive: 0,
        inboxes: 0,
        watchers: 0,
        chunks: 0,
        cancelled: 2
      })
    end

    test "cancel: before the first callback has run, it never runs" do
      {receptor, see} = {receptor(workers: 1, max_runners: 1), seen_reporter()}

      {:ok, _blocks} =
        CT.spawn(receptor, fn ->
          see.(self())

          receive do
            :open -> :done
          end
        end)

      [runner] = collect(1)
      {:ok, id} = CT.spawn(receptor, fn -> see.(:ran) end)
      assert CT.cancel(id) == :ok
      Kernel.send(runner, :open)
      refute_receive {:seen, _}, 300
    end

    test "cancel: only the blocked callback is killed" do
      {receptor, see} = {receptor(workers: 1), seen_reporter()}

      {:ok, id} =
        CT.spawn(receptor, fn ->
          see.(self())
          Process.sleep(:infinity)
        end)

      [runner] = collect(1)

      others =
        for i <- 1..50,
            do: elem(CT.spawn(receptor, fn -> {:after, 100, fn -> see.(i) end} end), 1)

      {:ok, ref} = CT.monitor(id)
      watch = Process.monitor(runner)
      assert CT.cancel(id) == :ok
      assert_receive {:DOWN, ^watch, :process, _, :killed}, 5_000
      assert_receive {:DOWN, ^ref, :callback_thread, ^id, :cancelled}, 5_000
      assert length(others) == 50
      assert Enum.sort(collect(50)) == Enum.to_list(1..50)
    end

    test "monitors get the reason with which a process would have ended" do
      receptor = receptor()

      reason = fn fun ->
        {:ok, id} = CT.spawn(receptor, fn -> {:receive, fn _ -> fun.() end} end)
        {:ok, ref} = CT.monitor(id)
        CT.send(id, :go)
        assert_receive {:DOWN, ^ref, :callback_thread, ^id, reason}, 5_000
        reason
      end

      assert reason.(fn -> :done end) == :normal
      assert reason.(fn -> exit(:shutdown) end) == :shutdown
      assert reason.(fn -> exit(:because) end) == :because
      assert {{:nocatch, :ball}, [_ | _]} = reason.(fn -> throw(:ball) end)
      assert {%ArithmeticError{}, [_ | _]} = reason.(fn -> 1 / (CT.count(receptor) - 1) end)
      assert reason.(fn -> Process.exit(self(), :kill) end) == :killed
      assert {:bad_return, {:reply}} = reason.(fn -> {:reply} end)
    end

    test "a removed monitor sends no message" do
      receptor = receptor()
      {:ok, id} = CT.spawn(receptor, fn -> {:receive, fn _ -> 1 end} end)
      {:ok, ref} = CT.monitor(id)
      {:ok, kept} = CT.monitor(id)
      assert CT.demonitor(id, ref) == :ok
      CT.cancel(id)
      assert_receive {:DOWN, ^kept, _, _, :cancelled}, 5_000
      refute_received {:DOWN, ^ref, _, _, _}
    end

    test "stopping a receptor notifies the monitors" do
      receptor = receptor()
      {:ok, id} = CT.spawn(receptor, fn -> {:receive, fn _ -> 1 end} end)
      {:ok, ref} = CT.monitor(id)
      CT.stop(receptor)
      assert_receive {:DOWN, ^ref, :callback_thread, ^id, {:worker_down, _}}, 5_000
    end
  end

  describe "registered functions" do
    test "are called with their integer, and may wait again" do
      {receptor, see} = {receptor(), seen_reporter()}
      {:ok, other} = CT.register(receptor, :other, fn n -> see.({:other, n}) end)

      {:ok, code} =
        CT.register(receptor, fn
          3, :due -> {:after, 1, other, -7}
          n, :due -> see.(n) && {:after, 1, n + 1}
        end)

      {:ok, _} = CT.spawn_registered(receptor, code, 0)
      assert collect(4) == [0, 1, 2, {:other, -7}]
      wait_for_stats(receptor, %{rows: 0, chunks: 0})
    end

    test "take messages, time out, or alternate with closures" do
      {receptor, see} = {receptor(workers: 1), seen_reporter()}

      {:ok, code} =
        CT.register(receptor, :counter, fn
          n, {:message, :add} -> {:receive, n + 1}
          n, {:message, :get} -> see.(n) && {:receive, n, 10}
          n, {:message, :closure} -> {:receive, fn m -> {:receive, m, n * 100, :infinity} end}
          n, :due -> see.({:timeout, n}) && {:receive, n}
        end)

      {:ok, id} = CT.spawn_registered(receptor, code, 5, after: :infinity)
      for message <- [:add, :add, :get], do: CT.send(id, message)
      assert collect(2) == [7, {:timeout, 7}]
      for message <- [:add, :closure, code, :get], do: CT.send(id, message)
      assert collect(2) == [800, {:timeout, 800}]
      assert CT.cancel(id) == :ok
    end

    test "unknown codes are errors, and registering again replaces the function" do
      {receptor, see} = {receptor(), seen_reporter()}
      assert CT.spawn_registered(receptor, 99, 1) == {:error, :no_such_function}
      assert CT.spawn_registered_many(receptor, 99, 1..3) == {:error, :no_such_function}
      assert {:error, {:bad_return, _}} = CT.call(receptor, fn -> {:after, 1, 99, 1} end)
      {:ok, code} = CT.register(receptor, :name, fn n -> see.({:old, n}) end)
      {:ok, ^code} = CT.register(receptor, :name, fn n -> see.({:new, n}) end)
      {:ok, _} = CT.spawn_registered(receptor, code, 1)
      assert collect(1) == [{:new, 1}]
      assert_raise ArgumentError, fn -> CT.spawn_registered(receptor, code, 1, after: -1) end

      assert_raise FunctionClauseError, fn ->
        CT.spawn_registered(receptor, code, 0x8000000000000000)
      end
    end

    test "their number is limited" do
      receptor = receptor(workers: 1)
      results = for i <- 1..4_200, do: CT.register(receptor, i, fn n -> n end)
      codes = for {:ok, code} <- results, do: code
      assert codes == Enum.to_list(0..(length(codes) - 1))
      assert length(codes) > 4_000
      assert {:error, :too_many_functions} in results
      assert {:ok, _} = CT.spawn_registered(receptor, List.last(codes), 1)
    end

    test "many at once, each exactly once" do
      receptor = receptor()
      seen = :counters.new(10_000, [])
      {:ok, code} = CT.register(receptor, fn n -> :counters.add(seen, n, 1) end)
      times = wait_at_once(receptor, code, [100, 400, 1_600, 6_400, 15_000])
      assert Enum.all?(1..10_000, &(:counters.get(seen, &1) == times))
    end

    # Starts 10,000 units with increasing delays, until a sample shows all of them waiting at the
    # same time. Returns the number of attempts.
    defp wait_at_once(receptor, code, [delay | longer]) do
      assert CT.spawn_registered_many(receptor, code, 1..10_000, after: delay) == {:ok, 10_000}
      all_wait = match?(%{alive: 10_000, rows: 0}, CT.stats(receptor))
      eventually(fn -> CT.count(receptor) == 0 end)
      if all_wait, do: 1, else: 1 + wait_at_once(receptor, code, longer)
    end
  end
end
