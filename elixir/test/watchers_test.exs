defmodule CallbackThread.WatchersTest do
  use ExUnit.Case, async: true
  import CallbackThread.Helpers
  alias CallbackThread, as: CT

  test "monitors of dead processes do not accumulate" do
    receptor = receptor(workers: 1)
    {:ok, id} = CT.spawn(receptor, fn -> {:receive, fn _ -> 1 end} end)
    {:ok, kept} = CT.monitor(id)
    short_lived = fn -> Task.async(fn -> {:ok, _} = CT.monitor(id) end) end
    for _ <- 1..100, do: Enum.each(for(_ <- 1..100, do: short_lived.()), &Task.await/1)
    # The last sweep may have been 1,024 monitors ago.
    eventually(fn -> CT.stats(receptor).watchers <= 1 + 1_024 end)
    CT.send(id, :end)
    assert_receive {:DOWN, ^kept, :callback_thread, ^id, :normal}, 5_000
    eventually(fn -> CT.stats(receptor).watchers == 0 end)
  end

  test "a thread may have very many watchers" do
    receptor = receptor(workers: 1)
    {:ok, id, replies} = CT.spawn_reply(receptor, fn -> {:receive, fn _ -> {:reply, 1} end} end)
    {:ok, other} = CT.spawn(receptor, fn -> {:receive, fn _ -> 1 end} end)
    {:ok, of_other} = CT.monitor(other)
    began = now()
    refs = for _ <- 1..30_000, do: elem(CT.monitor(id), 1)
    {dropped, kept} = Enum.split(refs, 15_000)
    for ref <- dropped, do: CT.demonitor(id, ref)
    CT.send(id, :go)
    assert CT.await(replies) == {:ok, 1}
    assert Enum.sort(for _ <- kept, do: next_down(id)) == Enum.sort(kept)
    assert now() - began < 10_000
    refute_received _
    wait_for_stats(receptor, %{watchers: 1})
    CT.cancel(other)
    assert_receive {:DOWN, ^of_other, _, ^other, :cancelled}, 5_000
  end

  defp next_down(id) do
    assert_receive {:DOWN, ref, :callback_thread, ^id, :normal}, 5_000
    ref
  end
end
