defmodule CallbackThread.RunningTest do
  use ExUnit.Case, async: false
  import CallbackThread.Helpers
  import ExUnit.CaptureLog
  alias CallbackThread, as: CT

  describe "timers" do
    test "never fire early, whatever the delay" do
      {receptor, see} = {receptor(), seen_reporter()}
      :rand.seed(:exsss, {4, 5, 6})
      ns = fn -> System.monotonic_time(:nanosecond) end

      for _ <- 1..2_000 do
        ms = :rand.uniform(300) - 1

        CT.spawn(receptor, fn ->
          began = ns.()
          {:after, ms, fn -> see.(ns.() - began - ms * 1_000_000) end}
        end)
      end

      late = collect(2_000)
      assert Enum.all?(late, &(&1 >= 0))
    end

    test "of registered functions never fire early" do
      {receptor, see} = {receptor(), seen_reporter()}

      {:ok, code} =
        CT.register(receptor, fn began -> see.(System.monotonic_time(:nanosecond) - began) end)

      for _ <- 1..50,
          do: CT.spawn_registered(receptor, code, System.monotonic_time(:nanosecond), after: 30)

      assert Enum.all?(collect(50), &(&1 >= 30_000_000))
    end

    test "of one worker fire in the order of their ticks, and of waiting among equal ones" do
      {receptor, see} = {receptor(workers: 1), seen_reporter()}
      :rand.seed(:exsss, {7, 8, 9})
      {:ok, code} = CT.register(receptor, fn n -> see.(n) end)
      bulks = for bulk <- 1..20, do: {bulk, 200 + 20 * :rand.uniform(5)}

      # All units of one bulk have the same due tick.
      for {bulk, ms} <- bulks do
        {:ok, 100} =
          CT.spawn_registered_many(receptor, code, (bulk * 100)..(bulk * 100 + 99), after: ms)
      end

      order = collect(2_000)

      for {bulk, _} <- bulks do
        assert Enum.filter(order, &(div(&1, 100) == bulk)) ==
                 Enum.to_list((bulk * 100)..(bulk * 100 + 99))
      end
    end

    test "may be very long" do
      receptor = receptor()
      long = 1_000_000_000_000
      {:ok, id} = CT.spawn(receptor, fn -> {:after, long, fn -> :never end} end)
      eventually(fn -> CT.stats(receptor).rows == 1 end)
      assert CT.cancel(id) == :ok

      assert {:error, {:bad_return, _}} =
               CT.call(receptor, fn -> {:after, long + 1, fn -> 1 end} end)
    end

    test "of zero milliseconds let other threads run" do
      {receptor, see} = {receptor(workers: 1), seen_reporter()}

      CT.spawn(receptor, fn ->
        see.(1) && {:after, 0, fn -> see.(3) && {:after, 0, fn -> see.(4) end} end}
      end)

      assert collect(3) == [1, 3, 4]
    end
  end

  describe "crashes" do
    test "of every tenth of 10,000 threads are reported, and the others complete" do
      receptor = receptor()
      done = :counters.new(10_000, [])

      log =
        capture_log(fn ->
          refs =
            for i <- 1..10_000, into: %{} do
              {:ok, id} =
                CT.spawn(receptor, fn ->
                  {:receive,
                   fn _ ->
                     if rem(i, 10) == 0, do: raise("number #{i}")
                     :counters.add(done, i, 1)
                   end}
                end)

              {:ok, ref} = CT.monitor(id)
              CT.cast(id, :go)
              {ref, {i, id}}
            end

          reasons = for {ref, {i, id}} <- refs, do: {i, reason(ref, id)}
          assert Enum.count(reasons, &match?({_, :normal}, &1)) == 9_000

          for {i, reason} <- reasons, rem(i, 10) == 0 do
            message = "number #{i}"
            assert {%RuntimeError{message: ^message}, _} = reason
          end
        end)

      assert Enum.all?(
               1..10_000,
               &(:counters.get(done, &1) == if(rem(&1, 10) == 0, do: 0, else: 1))
             )

      assert log =~ ~r/callback_thread.* ended: \*\* \(RuntimeError\) number \d+/

      wait_for_stats(receptor, %{
        crashed: 1_000,
        ended: 9_000,
        alive: 0,
        rows: 0,
        chunks: 0,
        watchers: 0
      })
    end

    defp reason(ref, id) do
      assert_receive {:DOWN, ^ref, :callback_thread, ^id, reason}, 20_000
      reason
    end

    test "a callback that kills its process ends no other thread" do
      {receptor, see} = {receptor(workers: 1), seen_reporter()}

      for i <- 1..300 do
        fun =
          if rem(i, 10) == 0,
            do: fn _ -> Process.exit(self(), :kill) end,
            else: fn _ -> see.(i) end

        Kernel.send(receptor, {:spawn, fun})
      end

      assert Enum.sort(collect(270)) == for(i <- 1..300, rem(i, 10) != 0, do: i)
      eventually(fn -> match?(%{crashed: 30, alive: 0}, CT.stats(receptor)) end)
      refute_received {:seen, _}
    end

    test "a link left by a callback does not end another callback" do
      {receptor, see} = {receptor(workers: 1), seen_reporter()}

      for i <- 1..100 do
        CT.spawn(receptor, fn ->
          spawn_link(fn -> Process.sleep(5) && exit(:left_behind) end)
          see.(i)
          {:after, 30, fn -> Process.put(:mine, i) == nil && see.(i) end}
        end)
      end

      assert Enum.sort(collect(200)) == Enum.sort(Enum.to_list(1..100) ++ Enum.to_list(1..100))
      assert %{crashed: 0} = CT.stats(receptor)
    end
  end

  describe "callbacks that block" do
    # In sequence, 10,000 sleeps of a second would take 10,000 s.
    test "10,000 sleepers of one second, in the form of the evaluated programme" do
      receptor = CT.Receptor.new()
      woken = :counters.new(1, [])
      began = now()

      for _ <- 1..10_000 do
        Kernel.send(
          receptor,
          {:spawn, fn _tid -> Process.sleep(1_000) && :counters.add(woken, 1, 1) end}
        )
      end

      eventually(fn -> :counters.get(woken, 1) == 10_000 end, 10_000)
      assert now() - began >= 1_000
      eventually(fn -> match?(%{alive: 0, runners: 0}, CT.stats(receptor)) end)
      CT.stop(receptor)
    end

    test "prompt callbacks among them run once each, and batches resume" do
      {receptor, see} = {receptor(workers: 1), seen_reporter()}

      for i <- 1..2_000 do
        fun =
          if rem(i, 20) == 0,
            do: fn _ -> Process.sleep(300) && see.(i) end,
            else: fn _ -> see.(i) end

        Kernel.send(receptor, {:spawn, fun})
      end

      assert Enum.sort(collect(2_000)) == Enum.to_list(1..2_000)
      for i <- 1..600, do: Kernel.send(receptor, {:spawn, fn _ -> see.({i, self()}) end})
      runners = for {_, runner} <- collect(600), do: runner
      assert length(Enum.uniq(Enum.drop(runners, 500))) < 10
      refute_received {:seen, _}
    end

    test "a long computation does not delay the others" do
      {receptor, see} = {receptor(workers: 1), seen_reporter()}
      stop = :atomics.new(1, [])
      Kernel.send(receptor, {:spawn, fn _ -> spin(stop) && see.(:spun) end})
      for i <- 1..100, do: Kernel.send(receptor, {:spawn, fn _ -> see.(i) end})
      assert collect(100) == Enum.to_list(1..100)
      :atomics.put(stop, 1, 1)
      assert collect(1) == [:spun]
    end

    defp spin(stop), do: if(:atomics.get(stop, 1) == 1, do: true, else: spin(stop))
  end

  describe "a worker that dies" do
    test "is replaced, and its threads are reported" do
      receptor = receptor(workers: 2)
      see = seen_reporter()

      log =
        capture_log(fn ->
          ids =
            for _ <- 1..20, do: elem(CT.spawn(receptor, fn -> {:receive, fn _ -> 1 end} end), 1)

          {:ok, _, ref} = CT.spawn_reply(receptor, fn -> {:receive, fn _ -> 1 end} end)
          {:ok, blocked} = CT.spawn(receptor, fn -> see.(self()) && Process.sleep(:infinity) end)
          [runner] = collect(1)
          watch = Process.monitor(runner)
          refs = for id <- [blocked | ids], do: {id, elem(CT.monitor(id), 1)}
          workers = CT.Directory.all(receptor)
          Enum.each(workers, &Process.exit(&1, :kill))

          for {id, ref} <- refs do
            assert_receive {:DOWN, ^ref, :callback_thread, ^id, {:worker_down, :killed}}, 5_000
            assert CT.send(id, :x) == {:error, :no_such_thread}
            assert CT.monitor(id) == {:error, :no_such_thread}
          end

          assert {:error, {:worker_down, :killed}} = CT.await(ref)
          # Running callbacks end with their worker.
          assert_receive {:DOWN, ^watch, :process, _, _}, 5_000
          eventually(fn -> length(CT.Directory.all(receptor) -- workers) == 2 end)
          eventually(fn -> CT.call(receptor, fn -> {:reply, :again} end) == {:ok, :again} end)
          for i <- 1..100, do: Kernel.send(receptor, {:spawn, fn _ -> see.(i) end})
          assert Enum.sort(collect(100)) == Enum.to_list(1..100)
          assert CT.count(receptor) == 0
        end)

      counts =
        for [_, count] <- Regex.scan(~r/(\d+) callback threads ended with their worker/, log),
            do: String.to_integer(count)

      assert Enum.sum(counts) == 22
    end

    test "together with its receptor: the watchers are notified" do
      receptor = CT.Receptor.new(workers: 2)
      ids = for _ <- 1..4, do: elem(CT.spawn(receptor, fn -> {:receive, fn _ -> 1 end} end), 1)
      refs = for id <- ids, do: {id, elem(CT.monitor(id), 1)}
      workers = CT.Directory.all(receptor)
      Process.exit(receptor, :kill)

      for {id, ref} <- refs do
        assert_receive {:DOWN, ^ref, :callback_thread, ^id, {:worker_down, _}}, 5_000
      end

      eventually(fn ->
        CT.Directory.all(receptor) == [] and not Enum.any?(workers, &Process.alive?/1)
      end)

      assert CT.spawn(receptor, fn -> 1 end) == {:error, :no_such_receptor}
      assert CT.count(receptor) == 0
    end

    test "raw requests held by the receptor go to the next worker" do
      receptor = receptor(workers: 1)
      {[worker], see} = {CT.Directory.all(receptor), seen_reporter()}
      :sys.suspend(worker)
      for i <- 1..3_000, do: Kernel.send(receptor, {:spawn, fn _ -> see.(i) end})
      {:ok, _} = CT.register(receptor, fn n -> n end)

      log =
        capture_log(fn ->
          Process.exit(worker, :kill) && eventually(fn -> CT.stats(receptor).workers == 1 end)
        end)

      # Only the requests sent to the dead worker are lost, and the log has their number.
      assert collect(1_976) == Enum.to_list(1_025..3_000)
      assert log =~ "1024 raw spawn requests were lost"
      refute_received {:seen, _}
    end

    test "the number of unread raw requests is logged" do
      receptor = receptor(workers: 1)
      [worker] = CT.Directory.all(receptor)

      log =
        capture_log(fn ->
          :sys.suspend(worker)
          for _ <- 1..50, do: Kernel.send(receptor, {:spawn, fn _ -> :never end})
          # The receptor handles messages in order, so it has forwarded all requests.
          {:ok, _} = CT.register(receptor, fn n -> n end)
          Process.exit(worker, :kill)
          eventually(fn -> CT.call(receptor, fn -> {:reply, 1} end) == {:ok, 1} end)
          :sys.get_state(receptor)
        end)

      assert log =~ "50 raw spawn requests were lost"
    end
  end
end
