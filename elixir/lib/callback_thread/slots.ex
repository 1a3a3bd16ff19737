defmodule CallbackThread.Slots do
  @moduledoc """
  Stores a worker's threads in chunks of 256 slots in `:atomics`, and manages their timers.

  Only the worker reads and writes its slots. `:atomics` serves not for sharing, but because it is
  the only mutable memory of the BEAM without a header for each element.

  ## A slot

  A slot has three 64-bit words, or 24 bytes. The first two values stay below 2^59, so that
  reading them does not allocate.

  | word | content |
  |---|---|
  | 1 | due tick; `never` if free, running, or waiting for a message without a timer |
  | 2 | sequence number (34 bits), generation (12 bits), kind (13 bits) |
  | 3 | integer argument; in a free slot, the index of the next free slot plus 1 |

  The kind denotes either a closure, which has a row in ETS, or a registered function, which needs
  only the slot because its code is part of the kind.

  ## Keys

  A key consists of the chunk's serial number, the generation and the slot's index. A slot is
  retired after its last generation, and serial numbers of chunks are never reused, so a key names
  only one thread. A chunk without threads is dropped.

  ## Timers

  Units have no timers of their own. A queue holds a lower bound of the earliest due tick of each
  chunk, and the chunk is scanned at that tick. Late units, and units due at the same tick, share
  one scan. The due units are sorted by tick and sequence number, and merged with those of other
  chunks, so timers with the same tick fire in the order in which the waits began (unless 2^34
  other waits began in between).
  """

  import Bitwise

  @slots_per_chunk 256
  @words_per_slot 3
  @used @slots_per_chunk * @words_per_slot + 1
  @free @slots_per_chunk * @words_per_slot + 2
  @high @slots_per_chunk * @words_per_slot + 3

  @slot_bits 8
  @generation_bits 12
  @last_generation (1 <<< @generation_bits) - 1
  @kind_bits 13
  @max_kind (1 <<< @kind_bits) - 1
  @seq_mask (1 <<< 34) - 1
  @never 1 <<< 58

  @kind_free 0
  @kind_running 1

  defstruct chunks: %{},
            # serial numbers of chunks with a free slot; the lowest is filled first
            roomy: :gb_sets.new(),
            # {due, seq, serial}, one for each chunk that has timers
            queue: :gb_sets.new(),
            # serial => {first, opened, rest}: the position of the chunk in the queue, the due
            # units that have not been taken, and the earliest due tick of the other units
            timers: %{},
            next_serial: 0,
            seq: 0,
            dropped: 0

  @type t :: %__MODULE__{}
  @typedoc "The key of one thread of a worker, never reused."
  @type key :: non_neg_integer()
  @typedoc "The kind of a slot: 0 is free, 1 is running, and the caller defines kinds from 2."
  @type kind :: non_neg_integer()

  @doc "Returns the slots of a worker without threads."
  @spec new() :: t()
  def new, do: %__MODULE__{}

  @doc "Returns the number of chunks."
  @spec chunks(t()) :: non_neg_integer()
  def chunks(slots), do: map_size(slots.chunks)

  @doc "Returns the largest kind that fits into a slot."
  @spec max_kind() :: kind()
  def max_kind, do: @max_kind

  @doc "Allocates a slot for a new, running thread, and returns its key."
  @spec claim(t()) :: {key(), t()}
  def claim(slots) do
    {serial, ref, slots} = chunk_with_room(slots)
    {slot, gen} = take_slot(ref)
    :atomics.add(ref, @used, 1)

    slots =
      if room?(ref), do: slots, else: %{slots | roomy: :gb_sets.del_element(serial, slots.roomy)}

    {key(serial, gen, slot), slots}
  end

  @doc """
  Returns the kind and the argument of a thread, `{:running, 0}` for a running one, or `nil` if the
  thread has ended.
  """
  @spec fetch(t(), key()) :: {:running | kind(), integer()} | nil
  def fetch(slots, key) do
    with {ref, slot, _serial, gen} <- locate(slots, key),
         meta when (meta >>> @kind_bits &&& @last_generation) == gen <-
           :atomics.get(ref, word(slot, 2)) do
      case meta &&& @max_kind do
        @kind_free -> nil
        @kind_running -> {:running, 0}
        kind -> {kind, :atomics.get(ref, word(slot, 3))}
      end
    else
      _ -> nil
    end
  end

  @doc """
  Makes a thread, which must not have ended, wait as `kind` with `argument`, until the tick `due`
  or, with `:never`, without a timer.
  """
  @spec park(t(), key(), kind(), CallbackThread.Clock.tick() | :never, integer()) :: t()
  def park(slots, key, kind, due, argument) when kind in 2..@max_kind do
    {ref, slot, serial, gen} = locate(slots, key)
    seq = slots.seq
    :atomics.put(ref, word(slot, 1), if(due == :never, do: @never, else: due))
    :atomics.put(ref, word(slot, 2), meta(seq, gen, kind))
    :atomics.put(ref, word(slot, 3), argument)
    slots = %{slots | seq: seq + 1 &&& @seq_mask}
    if due == :never, do: slots, else: schedule(slots, serial, {due, seq})
  end

  @doc "Ends the wait of a thread, and marks it as running."
  @spec unpark(t(), key()) :: :ok
  def unpark(slots, key) do
    {ref, slot, _serial, gen} = locate(slots, key)
    set_running(ref, slot, gen)
  end

  @doc "Frees the slot of a thread. Its key is invalid afterwards."
  @spec release(t(), key()) :: t()
  def release(slots, key) do
    {ref, slot, serial, gen} = locate(slots, key)

    if :atomics.sub_get(ref, @used, 1) == 0 do
      drop_chunk(slots, serial)
    else
      had_room = room?(ref)
      free_slot(ref, slot, gen)

      if had_room or not room?(ref),
        do: slots,
        else: %{slots | roomy: :gb_sets.add_element(serial, slots.roomy)}
    end
  end

  @doc "Returns the earliest tick at which a thread may be due, or `nil` if there are no timers."
  @spec next_due(t()) :: CallbackThread.Clock.tick() | nil
  def next_due(slots) do
    if :gb_sets.is_empty(slots.queue), do: nil, else: elem(:gb_sets.smallest(slots.queue), 0)
  end

  @doc """
  Takes up to `max` threads whose due tick is `now` or earlier, and marks them as running. Returns
  their keys, previous kinds and arguments, in the order in which they are due.
  """
  @spec take_due(t(), CallbackThread.Clock.tick(), non_neg_integer()) ::
          {[{key(), kind(), integer()}], t()}
  def take_due(slots, now, max), do: take_due(slots, now, max, [])

  defp take_due(slots, now, room, taken) do
    due = next_due(slots)

    if room > 0 and due != nil and due <= now do
      {{_, _, serial}, queue} = :gb_sets.take_smallest(slots.queue)
      ref = Map.fetch!(slots.chunks, serial)
      {opened, rest} = open(slots, serial, ref, now)
      {opened, room, taken} = fire(opened, ref, serial, first_of(queue), room, taken)
      take_due(put_timers(%{slots | queue: queue}, serial, opened, rest), now, room, taken)
    else
      {Enum.reverse(taken), slots}
    end
  end

  # -- timers --

  defp schedule(slots, serial, at) do
    case slots.timers do
      %{^serial => {first, [], _}} when first <= at ->
        slots

      %{^serial => {first, [], _}} ->
        move(slots, serial, first, at)

      %{^serial => {first, opened, rest}} ->
        put_in(slots.timers[serial], {first, opened, earlier(rest, at)})

      _ ->
        put_timers(slots, serial, [], at)
    end
  end

  defp move(slots, serial, {due, seq}, at) do
    queue = :gb_sets.del_element({due, seq, serial}, slots.queue)
    put_timers(%{slots | queue: queue}, serial, [], at)
  end

  defp put_timers(slots, serial, [], nil), do: %{slots | timers: Map.delete(slots.timers, serial)}

  defp put_timers(slots, serial, opened, rest) do
    {due, seq} = first = if opened == [], do: rest, else: place(hd(opened))
    queue = :gb_sets.add_element({due, seq, serial}, slots.queue)
    %{slots | queue: queue, timers: Map.put(slots.timers, serial, {first, opened, rest})}
  end

  defp open(slots, serial, ref, now) do
    case Map.fetch!(slots.timers, serial) do
      {_first, [], _rest} -> scan(ref, :atomics.get(ref, @high) - 1, now, [], nil)
      {_first, opened, rest} -> {opened, rest}
    end
  end

  defp scan(_ref, -1, _now, due, rest), do: {Enum.sort(due), rest}

  defp scan(ref, slot, now, due, rest) do
    case :atomics.get(ref, word(slot, 1)) do
      @never ->
        scan(ref, slot - 1, now, due, rest)

      at when at <= now ->
        scan(ref, slot - 1, now, [{at, seq(ref, slot), slot} | due], rest)

      at when rest == nil or at <= elem(rest, 0) ->
        scan(ref, slot - 1, now, due, earlier(rest, {at, seq(ref, slot)}))

      _ ->
        scan(ref, slot - 1, now, due, rest)
    end
  end

  # Takes the due units that precede `limit`, the first unit of all other chunks.
  defp fire([{due, seq, slot} = unit | opened], ref, serial, limit, room, taken)
       when room > 0 do
    cond do
      limit != nil and place(unit) > limit ->
        {[unit | opened], room, taken}

      # The unit may have been cancelled or woken by a message since the scan.
      :atomics.get(ref, word(slot, 1)) != due or seq(ref, slot) != seq ->
        fire(opened, ref, serial, limit, room, taken)

      true ->
        fire(opened, ref, serial, limit, room - 1, [take(ref, serial, slot) | taken])
    end
  end

  defp fire(opened, _ref, _serial, _limit, room, taken), do: {opened, room, taken}

  defp take(ref, serial, slot) do
    meta = :atomics.get(ref, word(slot, 2))
    gen = meta >>> @kind_bits &&& @last_generation
    argument = :atomics.get(ref, word(slot, 3))
    set_running(ref, slot, gen)
    {key(serial, gen, slot), meta &&& @max_kind, argument}
  end

  defp place({due, seq, _slot}), do: {due, seq}

  defp first_of(queue) do
    if :gb_sets.is_empty(queue), do: nil, else: place(:gb_sets.smallest(queue))
  end

  defp earlier(nil, at), do: at
  defp earlier(rest, at), do: min(rest, at)

  # -- chunks and slots --

  defp chunk_with_room(slots) do
    if :gb_sets.is_empty(slots.roomy) do
      serial = slots.next_serial
      ref = :atomics.new(@slots_per_chunk * @words_per_slot + 3, signed: true)
      chunks = Map.put(slots.chunks, serial, ref)
      roomy = :gb_sets.add_element(serial, slots.roomy)
      {serial, ref, %{slots | chunks: chunks, roomy: roomy, next_serial: serial + 1}}
    else
      serial = :gb_sets.smallest(slots.roomy)
      {serial, Map.fetch!(slots.chunks, serial), slots}
    end
  end

  defp take_slot(ref) do
    case :atomics.get(ref, @free) do
      0 -> fresh_slot(ref)
      next -> reuse_slot(ref, next - 1)
    end
  end

  defp fresh_slot(ref) do
    slot = :atomics.add_get(ref, @high, 1) - 1
    set_running(ref, slot, 0)
    {slot, 0}
  end

  defp reuse_slot(ref, slot) do
    :atomics.put(ref, @free, :atomics.get(ref, word(slot, 3)))
    gen = :atomics.get(ref, word(slot, 2)) >>> @kind_bits &&& @last_generation
    set_running(ref, slot, gen)
    {slot, gen}
  end

  # After its last generation, a slot never returns to the free list, because keys must be unique.
  defp free_slot(ref, slot, @last_generation),
    do: set(ref, slot, meta(0, @last_generation, @kind_free), 0)

  defp free_slot(ref, slot, gen) do
    set(ref, slot, meta(0, gen + 1, @kind_free), :atomics.get(ref, @free))
    :atomics.put(ref, @free, slot + 1)
  end

  defp set_running(ref, slot, gen), do: set(ref, slot, meta(0, gen, @kind_running), 0)

  defp set(ref, slot, meta, argument) do
    :atomics.put(ref, word(slot, 1), @never)
    :atomics.put(ref, word(slot, 2), meta)
    :atomics.put(ref, word(slot, 3), argument)
  end

  defp drop_chunk(slots, serial) do
    %{
      slots
      | chunks: Map.delete(slots.chunks, serial),
        roomy: :gb_sets.del_element(serial, slots.roomy),
        queue: unqueue(slots, serial),
        timers: Map.delete(slots.timers, serial),
        dropped: slots.dropped + 1
    }
  end

  defp unqueue(slots, serial) do
    case slots.timers do
      %{^serial => {{due, seq}, _, _}} -> :gb_sets.del_element({due, seq, serial}, slots.queue)
      _ -> slots.queue
    end
  end

  defp room?(ref), do: :atomics.get(ref, @free) > 0 or :atomics.get(ref, @high) < @slots_per_chunk

  defp locate(slots, key) do
    serial = key >>> (@slot_bits + @generation_bits)

    case slots.chunks do
      %{^serial => ref} ->
        {ref, key &&& @slots_per_chunk - 1, serial, key >>> @slot_bits &&& @last_generation}

      _ ->
        nil
    end
  end

  defp key(serial, gen, slot),
    do: serial <<< (@slot_bits + @generation_bits) ||| gen <<< @slot_bits ||| slot

  defp meta(seq, gen, kind),
    do: seq <<< (@generation_bits + @kind_bits) ||| gen <<< @kind_bits ||| kind

  defp seq(ref, slot), do: :atomics.get(ref, word(slot, 2)) >>> (@generation_bits + @kind_bits)
  defp word(slot, n), do: slot * @words_per_slot + n
end
