defmodule CallbackThread.IsolationTest do
  @moduledoc "A mistake in one caller or callback does not affect others."

  use ExUnit.Case, async: true
  import CallbackThread.Helpers
  import Bitwise, only: [<<<: 2]
  import ExUnit.CaptureLog
  alias CallbackThread, as: CT

  # Sends the functions while the worker is suspended, so that one runner gets all of them in one
  # batch.
  defp in_one_batch(receptor, funs) do
    [worker] = CT.Directory.all(receptor)
    :sys.suspend(worker)
    for fun <- funs, do: Kernel.send(receptor, {:spawn, fun})
    :sys.get_state(receptor)
    :sys.resume(worker)
  end

  test "a callback does not receive messages left by another one" do
    {receptor, see} = {receptor(workers: 1), seen_reporter()}

    in_one_batch(
      receptor,
      for i <- 1..200 do
        fn _ ->
          found =
            receive do
              message -> message
            after
              0 -> :nothing
            end

          Kernel.send(self(), {:left, i})
          Kernel.send(self(), {})
          Kernel.send(self(), :left)
          see.(found)
        end
      end
    )

    assert Enum.uniq(collect(200)) == [:nothing]
  end

  test "a callback does not inherit names, priority, group leader, monitors or dictionary" do
    {receptor, see} = {receptor(workers: 1), seen_reporter()}
    names = for i <- 1..40, do: :"isolation_test_#{i}"

    state = fn ->
      info = Process.info(self(), [:priority, :trap_exit, :registered_name, :monitors, :messages])
      {info, Process.group_leader(), Process.get(:left)}
    end

    Kernel.send(receptor, {:spawn, fn _ -> see.(state.()) end})
    [pristine] = collect(1)

    leave = [
      fn _ -> Process.register(self(), :isolation_test_name) end,
      fn _ -> Process.flag(:priority, :low) end,
      fn _ -> Process.flag(:trap_exit, true) end,
      fn _ -> Process.group_leader(self(), self()) end,
      fn _ -> Process.monitor(spawn(fn -> :ok end)) end,
      fn _ -> Process.put(:left, 1) end
    ]

    funs = Enum.flat_map(leave, fn fun -> [fun, fn _ -> see.(state.()) end] end)
    for _ <- 1..10, do: in_one_batch(receptor, funs)
    assert Enum.uniq(collect(60)) == [pristine]

    # Each registration would fail in a process that already has a name.
    in_one_batch(
      receptor,
      for(name <- names, do: fn _ -> see.(Process.register(self(), name)) end)
    )

    assert collect(40) == List.duplicate(true, 40)
  end

  test "forged ids raise in the caller and do not reach the worker" do
    receptor = receptor(workers: 1)

    {:ok, {:callback_thread, worker, key}} =
      CT.spawn(receptor, fn -> {:receive, fn _ -> 1 end} end)

    for wrong <- [
          {:callback_thread, worker, :key},
          {:callback_thread, worker, 1.0},
          {:callback_thread, :worker, key},
          {:other, worker, key},
          worker,
          nil
        ],
        fun <- [
          &CT.send(&1, 1),
          &CT.cast(&1, 1),
          &CT.cancel/1,
          &CT.monitor/1,
          &CT.alive?/1,
          &CT.demonitor(&1, make_ref())
        ] do
      assert_raise FunctionClauseError, fn -> fun.(wrong) end
    end

    for unknown <- [-1, -key - 256, 1 <<< 80] do
      assert CT.send({:callback_thread, worker, unknown}, 1) == {:error, :no_such_thread}
    end

    assert CT.alive?({:callback_thread, worker, key})
  end

  test "unknown calls and casts to a receptor end no threads" do
    receptor = receptor()
    {:ok, id} = CT.spawn(receptor, fn -> {:receive, fn _ -> 1 end} end)

    log =
      capture_log(fn ->
        assert GenServer.call(receptor, {:spawn, fn -> 1 end}) == {:error, :unknown_request}
        GenServer.cast(receptor, {:spawn, fn -> 1 end})
        {:ok, _} = CT.register(receptor, fn n -> n end)
      end)

    assert log =~ "refuses a call of {:spawn"
    assert log =~ "ignores a cast of {:spawn"
    assert CT.alive?(id)
  end

  test "without a receptor, statistics are 0 and registering is an error" do
    {there, gone} = {receptor(), receptor()}
    CT.stop(gone)
    figures = CT.stats(gone)
    assert Enum.sort(Map.keys(figures)) == Enum.sort(Map.keys(CT.stats(there)))
    assert figures |> Map.values() |> Enum.all?(&(&1 == 0))

    for nobody <- [gone, :nobody_has_this_name, self()],
        do: assert(CT.register(nobody, fn n -> n end) == {:error, :no_such_receptor})
  end

  test "a wait for a message may be without end in each form" do
    {receptor, see} = {receptor(), seen_reporter()}
    never = fn -> see.(:never) end
    {:ok, id} = CT.spawn(receptor, fn -> {:receive, see, :infinity, never} end)

    {:ok, code} =
      CT.register(receptor, fn
        n, {:message, m} -> see.({n, m})
        n, :due -> {:receive, n + 1, :infinity}
      end)

    {:ok, other} = CT.spawn_registered(receptor, code, 1)
    for id <- [id, other], do: CT.send(id, :hello)
    assert Enum.sort(collect(2)) == [:hello, {2, :hello}]

    assert {:error, {:bad_return, _}} =
             CT.call(receptor, fn -> {:after, :infinity, fn -> 1 end} end)
  end
end
