defmodule CallbackThread.SupervisionTest do
  use ExUnit.Case, async: false
  import CallbackThread.Helpers
  import ExUnit.CaptureLog
  alias CallbackThread, as: CT

  test "a receptor whose directory dies is replaced by its supervisor, and works" do
    start_supervised!({CT.Receptor, name: :survivor, workers: 2})
    {:ok, id} = CT.spawn(:survivor, fn -> {:receive, fn _ -> 1 end} end)
    before = Process.whereis(:survivor)

    capture_log(fn ->
      Process.exit(Process.whereis(CT.Directory), :kill)
      eventually(fn -> Process.whereis(:survivor) not in [nil, before] end)
      eventually(fn -> CT.call(:survivor, fn -> {:reply, 1} end) == {:ok, 1} end)
    end)

    assert CT.send(id, :x) == {:error, :no_such_thread}
    {:ok, new} = CT.spawn(:survivor, fn -> {:receive, fn _ -> 1 end} end)
    assert {:ok, _} = CT.monitor(new)
    receptor = receptor()
    assert CT.call(receptor, fn -> {:reply, 2} end) == {:ok, 2}
  end

  test "workers have ended when a supervised receptor has, and runners end with them" do
    {:ok, supervisor} =
      Supervisor.start_link(
        [{CT.Receptor, name: :one_of_two}, {CT.Receptor, name: :two_of_two}],
        strategy: :one_for_one
      )

    see = seen_reporter()
    {:ok, _} = CT.spawn(:one_of_two, fn -> see.(self()) && Process.sleep(:infinity) end)
    [runner] = collect(1)
    watch = Process.monitor(runner)
    workers = Enum.flat_map([:one_of_two, :two_of_two], &workers/1)
    assert length(workers) == 2 * System.schedulers_online()
    Supervisor.stop(supervisor)
    refute Enum.any?(workers, &Process.alive?/1)
    assert_receive {:DOWN, ^watch, :process, ^runner, _}, 5_000
  end

  defp workers(name), do: CT.Directory.all(Process.whereis(name))

  test "a worker's successor may be known before its death is" do
    receptor = receptor(workers: 1)
    [worker] = CT.Directory.all(receptor)
    :sys.suspend(worker)
    for _ <- 1..30, do: Kernel.send(receptor, {:spawn, fn _ -> 1 end})
    state = :sys.get_state(receptor)
    successor = spawn(fn -> :ok end)
    up = {:worker_up, 0, successor, :atomics.new(3, [])}

    log =
      capture_log(fn ->
        {:noreply, state, _} = CT.Receptor.handle_info(up, state)
        down = {:DOWN, make_ref(), :process, worker, :killed}
        assert {:noreply, ^state, _} = CT.Receptor.handle_info(down, state)
        assert %{0 => {^successor, _, _}} = state.workers
      end)

    assert log =~ "30 raw spawn requests were lost"
  end

  test "the number of raw requests held by a stopped receptor is logged" do
    receptor = receptor(workers: 1)
    [worker] = CT.Directory.all(receptor)
    :sys.suspend(worker)
    for _ <- 1..2_000, do: Kernel.send(receptor, {:spawn, fn _ -> 1 end})
    :sys.get_state(receptor)
    log = capture_log(fn -> Process.exit(worker, :kill) && CT.stop(receptor) end)
    assert log =~ ~r/raw spawn requests/
    assert CT.Directory.all(receptor) == []
  end
end
