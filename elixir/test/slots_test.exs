defmodule CallbackThread.SlotsTest do
  use ExUnit.Case, async: true
  alias CallbackThread.Slots

  defp claim(slots, count) do
    Enum.map_reduce(1..count//1, slots, fn _, slots -> Slots.claim(slots) end)
  end

  test "a chunk exists from its first thread to its last" do
    {keys, slots} = claim(Slots.new(), 1_000)
    assert Slots.chunks(slots) == 4
    assert length(Enum.uniq(keys)) == 1_000
    slots = Enum.reduce(keys, slots, &Slots.release(&2, &1))
    assert Slots.chunks(slots) == 0
    assert Slots.next_due(slots) == nil
  end

  test "a reused slot has another key, beyond the number of generations" do
    {_keeps_the_chunk, slots} = Slots.claim(Slots.new())

    {keys, slots} =
      Enum.map_reduce(1..5_000, slots, fn _, slots ->
        {key, slots} = Slots.claim(slots)
        slots = Slots.release(slots, key)
        assert Slots.fetch(slots, key) == nil
        {key, slots}
      end)

    assert length(Enum.uniq(keys)) == 5_000
    assert Enum.all?(keys, &(Slots.fetch(slots, &1) == nil))
  end

  test "keys of another chunk and forged keys are invalid" do
    {[key], slots} = claim(Slots.new(), 1)
    assert {:running, _} = Slots.fetch(slots, key)

    for made_up <- [key + 1, key + 255, key + 256, key + 0x100000, 1_000_000_000_000_000_000_000] do
      assert Slots.fetch(slots, made_up) == nil
    end
  end

  test "a slot keeps any 64-bit integer" do
    for argument <- [0, -1, 0x7FFFFFFFFFFFFFFF, -0x8000000000000000] do
      {key, slots} = Slots.claim(Slots.new())
      slots = Slots.park(slots, key, Slots.max_kind(), :never, argument)
      assert Slots.fetch(slots, key) == {Slots.max_kind(), argument}
    end
  end

  test "nothing is due early, and due units come in order of tick and then of waiting" do
    :rand.seed(:exsss, {1, 2, 3})
    {keys, slots} = claim(Slots.new(), 2_000)
    # The waits begin in a different order from that of the slots.
    waits = for key <- Enum.shuffle(keys), do: {key, :rand.uniform(50)}

    slots =
      Enum.reduce(waits, slots, fn {key, due}, slots -> Slots.park(slots, key, 9, due, due) end)

    {order, slots} =
      Enum.flat_map_reduce(1..50, slots, fn now, slots ->
        {taken, slots} = drain(slots, now, [])
        assert Enum.all?(taken, fn {_, 9, due} -> due == now end)
        {taken, slots}
      end)

    assert Enum.map(order, &elem(&1, 0)) ==
             waits |> Enum.sort_by(&elem(&1, 1)) |> Enum.map(&elem(&1, 0))

    assert Slots.next_due(slots) == nil
  end

  # Takes the due threads in small batches, like a worker whose queue is nearly full.
  defp drain(slots, now, taken) do
    case Slots.take_due(slots, now, 7) do
      {[], slots} -> {taken, slots}
      {some, slots} -> drain(slots, now, taken ++ some)
    end
  end

  test "a unit released or woken between two batches is no longer due" do
    {keys, slots} = claim(Slots.new(), 10)
    slots = Enum.reduce(keys, slots, &Slots.park(&2, &1, 9, 5, 0))
    {taken, slots} = Slots.take_due(slots, 5, 3)
    assert Enum.map(taken, &elem(&1, 0)) == Enum.take(keys, 3)
    Slots.unpark(slots, Enum.at(keys, 4))
    slots = Slots.release(slots, Enum.at(keys, 5))
    slots = Slots.park(slots, Enum.at(keys, 6), 9, 8, 0)
    {taken, slots} = Slots.take_due(slots, 5, 100)
    assert Enum.map(taken, &elem(&1, 0)) == for(i <- [3, 7, 8, 9], do: Enum.at(keys, i))
    assert {[{last, 9, 0}], _} = Slots.take_due(slots, 8, 100)
    assert last == Enum.at(keys, 6)
  end
end
