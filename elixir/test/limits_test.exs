defmodule CallbackThread.LimitsTest do
  use ExUnit.Case, async: true
  import CallbackThread.Helpers
  alias CallbackThread, as: CT

  # Starts a receptor with one worker, whose only process is blocked, so that requests wait.
  defp blocked(options) do
    receptor = receptor([workers: 1, max_runners: 1] ++ options)
    see = seen_reporter()

    {:ok, gate} =
      CT.spawn(receptor, fn ->
        see.(self())

        receive do
          :open -> :ok
        end
      end)

    [runner] = collect(1)
    {receptor, runner, gate}
  end

  test "try_spawn refuses beyond the limit, and accepts again" do
    {receptor, runner, _} = blocked(max_waiting: 5)
    see = seen_reporter()

    # Before the worker detects that the runner is blocked, it may give the runner up to 128 jobs,
    # which it then revokes.
    results = for i <- 1..10, do: CT.try_spawn(receptor, fn -> see.(i) end)
    assert Enum.map(results, &elem(&1, 0)) == List.duplicate(:ok, 5) ++ List.duplicate(:error, 5)
    assert Enum.all?(Enum.drop(results, 5), &(&1 == {:error, :full}))
    wait_for_stats(receptor, %{waiting: 5})
    Kernel.send(runner, :open)
    assert collect(5) == [1, 2, 3, 4, 5]
    assert {:ok, _} = CT.try_spawn(receptor, fn -> see.(:again) end)
    assert collect(1) == [:again]
  end

  test "spawn waits beyond the limit, in order, and nothing is lost" do
    {receptor, runner, _} = blocked(max_waiting: 3)
    see = seen_reporter()
    me = self()
    for i <- 1..3, do: {:ok, _} = CT.spawn(receptor, fn -> see.(i) end)

    for i <- 4..20 do
      spawn_link(fn ->
        {:ok, id} = CT.spawn(receptor, fn -> see.(i) end)
        Kernel.send(me, {:accepted, i, id})
      end)

      eventually(fn -> CT.stats(receptor).parked == i - 3 end)
    end

    refute_received {:accepted, _, _}
    Kernel.send(runner, :open)
    assert collect(20) == Enum.to_list(1..20)
    for i <- 4..20, do: assert_receive({:accepted, ^i, _}, 5_000)
    wait_for_stats(receptor, %{parked: 0})
  end

  test "try_spawn takes another worker when one is full" do
    receptor = receptor(workers: 2, max_runners: 1, max_waiting: 1)
    see = seen_reporter()
    block = fn -> see.(self()) && Process.sleep(:infinity) end
    {:ok, _} = CT.spawn(receptor, block)
    {:ok, _} = CT.spawn(receptor, block)
    assert length(Enum.uniq(collect(2))) == 2

    assert for(_ <- 1..4, do: elem(CT.try_spawn(receptor, fn -> 1 end), 0)) == [
             :ok,
             :ok,
             :error,
             :error
           ]
  end

  test "requests of cancelled threads do not count for long" do
    {receptor, _runner, _} = blocked(max_waiting: 5)
    ids = for _ <- 1..5, do: elem(CT.try_spawn(receptor, fn -> 1 end), 1)
    assert CT.try_spawn(receptor, fn -> 1 end) == {:error, :full}
    for id <- ids, do: assert(CT.cancel(id) == :ok)
    wait_for_stats(receptor, %{waiting: 0, ready: 0})
    for _ <- 1..5, do: assert({:ok, _} = CT.try_spawn(receptor, fn -> 1 end))
  end

  test "a call's timeout includes the wait for room, and a rejected request never runs" do
    {receptor, runner, _} = blocked(max_waiting: 1)
    see = seen_reporter()
    {:ok, _} = CT.spawn(receptor, fn -> see.(:first) end)
    began = now()
    call = Task.async(fn -> CT.call(receptor, fn -> see.(:withdrawn) end, 50) end)
    assert Task.await(call) == {:error, :timeout}
    assert now() - began >= 50
    wait_for_stats(receptor, %{parked: 0})
    {:ok, _} = Task.start(fn -> CT.call(receptor, fn -> see.(:second) end, 20_000) end)
    eventually(fn -> CT.stats(receptor).parked == 1 end)
    Kernel.send(runner, :open)
    assert collect(2) == [:first, :second]
    eventually(fn -> CT.count(receptor) == 0 end)
    refute_received {:seen, _}
  end

  test "many waiting spawners are accepted while each job gets its own process" do
    receptor = receptor(workers: 1, max_waiting: 2, max_runners: 1_000)
    see = seen_reporter()

    for i <- 1..500,
        do: spawn_link(fn -> CT.spawn(receptor, fn -> Process.sleep(20) && see.(i) end) end)

    assert Enum.sort(collect(500)) == Enum.to_list(1..500)
    eventually(fn -> match?(%{parked: 0, alive: 0, runners: 0}, CT.stats(receptor)) end)
  end

  test "invalid options raise errors that name them" do
    for {name, wrong} <- [
          workers: 0,
          workers: -1,
          workers: "2",
          max_waiting: 0,
          max_inbox: 0,
          max_runners: 0,
          max_runners: 1.5
        ] do
      assert_raise ArgumentError, ~r/#{name}: needs an integer of at least 1/, fn ->
        CT.Receptor.new([{name, wrong}])
      end
    end

    assert_raise ArgumentError, ~r/unknown option :worker/, fn -> CT.Receptor.new(worker: 1) end
    assert_raise ArgumentError, ~r/keyword/, fn -> CT.Receptor.new(%{workers: 1}) end
    taken = receptor(name: :taken)
    assert_raise ArgumentError, ~r/already_started/, fn -> CT.Receptor.new(name: :taken) end
    assert CT.count(taken) == 0
    receptor = receptor(workers: 1)
    {:ok, code} = CT.register(receptor, fn n -> n end)

    for wrong <- [-1, 1.5, nil, 1_000_000_000_001] do
      assert_raise ArgumentError, ~r/after: needs/, fn ->
        CT.spawn_registered(receptor, code, 1, after: wrong)
      end
    end

    assert_raise ArgumentError, ~r/unknown/, fn ->
      CT.spawn_registered_many(receptor, code, [1], delay: 5)
    end

    for wrong <- [-1, :soon, 0x100000000] do
      assert_raise FunctionClauseError, fn -> CT.call(receptor, fn -> 1 end, wrong) end
      assert_raise FunctionClauseError, fn -> CT.await(make_ref(), wrong) end
    end

    assert CT.count(receptor) == 0
  end

  test "raw requests are unbounded" do
    {receptor, runner, _} = blocked(max_waiting: 5)
    see = seen_reporter()
    for i <- 1..100, do: Kernel.send(receptor, {:spawn, fn _ -> see.(i) end})
    eventually(fn -> CT.stats(receptor).waiting == 100 end)
    Kernel.send(runner, :open)
    assert collect(100) == Enum.to_list(1..100)
  end

  test "no more processes than allowed, and all run in the end" do
    receptor = receptor(workers: 1, max_runners: 10)
    see = seen_reporter()
    for i <- 1..60, do: {:ok, _} = CT.spawn(receptor, fn -> Process.sleep(200) && see.(i) end)
    most = Enum.max(for _ <- 1..20, do: Process.sleep(2) && CT.stats(receptor).runners)
    # A runner that is about to end may count as well.
    assert most in 1..11
    assert Enum.sort(collect(60)) == Enum.to_list(1..60)
  end
end
