defmodule CallbackThread.MemoryTest do
  use ExUnit.Case, async: false
  import CallbackThread.Helpers
  alias CallbackThread, as: CT

  test "100 cycles of spawning and ending leave no memory in use" do
    receptor = receptor()
    {:ok, code} = CT.register(receptor, fn n -> n end)

    sizes =
      for _ <- 1..100 do
        for _ <- 1..500,
            do: Kernel.send(receptor, {:spawn, fn _ -> {:after, 1, fn -> :done end} end})

        ids = for _ <- 1..50, do: elem(CT.spawn(receptor, fn -> {:receive, fn _ -> 1 end} end), 1)
        {:ok, 450} = CT.spawn_registered_many(receptor, code, 1..450, after: 1)
        for id <- ids, do: CT.send(id, :end)
        # Wait for the number of ended threads, because a raw request in transit is not alive yet.
        wanted = Process.get(:wanted, 0) + 1_000
        Process.put(:wanted, wanted)
        wait_for_stats(receptor, %{ended: wanted, alive: 0})

        wait_for_stats(receptor, %{
          chunks: 0,
          rows: 0,
          inboxes: 0,
          watchers: 0,
          ready: 0,
          alive: 0
        })

        workers_size(receptor)
      end

    # After a warm-up, the heaps of the workers stay within the same bounds.
    assert Enum.max(Enum.drop(sizes, 50)) <= 4 * Enum.max(Enum.take(sizes, 50))
  end

  defp workers_size(receptor) do
    Enum.sum(for worker <- CT.Directory.all(receptor), do: elem(Process.info(worker, :memory), 1))
  end

  test "waiting units are small, and their memory is released" do
    receptor = receptor(workers: 1)
    {:ok, code} = CT.register(receptor, fn n -> n end)
    units = 20_000

    registered =
      growth(receptor, fn ->
        {:ok, ^units} = CT.spawn_registered_many(receptor, code, 1..units, after: 86_400_000)
      end)

    assert registered / units <= 32

    closures =
      growth(receptor, fn ->
        for i <- 1..units, do: Kernel.send(receptor, {:spawn, sleeper(i)})
      end)

    assert closures / units <= 150
  end

  defp sleeper(i), do: fn _ -> {:after, 86_400_000, fn -> i end} end

  # Returns the bytes that ETS and `:atomics` use for the waiting threads that `start` creates.
  # Cancels the threads afterwards.
  defp growth(receptor, start) do
    [worker] = CT.Directory.all(receptor)
    before = held(worker)
    start.()
    eventually(fn -> match?(%{alive: 20_000, ready: 0, runners: 0}, CT.stats(receptor)) end)
    during = held(worker)
    state = :sys.get_state(worker)

    for {serial, ref} <- state.threads.slots.chunks,
        i <- 0..255,
        do: cancel(worker, serial, ref, i)

    wait_for_stats(receptor, %{chunks: 0, rows: 0, alive: 0})
    eventually(fn -> held(worker) == before end)
    during - before
  end

  defp cancel(worker, serial, ref, slot) do
    import Bitwise
    meta = :atomics.get(ref, slot * 3 + 2)
    key = serial <<< 20 ||| (meta >>> 13 &&& 4095) <<< 8 ||| slot
    CT.cancel({:callback_thread, worker, key})
  end

  defp held(worker) do
    state = :sys.get_state(worker)
    chunks = for {_, ref} <- state.threads.slots.chunks, do: :atomics.info(ref).memory
    Enum.sum(chunks) + table_bytes(state.threads.rows)
  end

  # The hash table shrinks in steps, so an empty table counts as 0 bytes whatever its size.
  defp table_bytes(rows) do
    empty = :ets.info(:ets.new(:empty, [:set]), :memory)
    if :ets.info(rows, :size) == 0, do: 0, else: (:ets.info(rows, :memory) - empty) * 8
  end
end
