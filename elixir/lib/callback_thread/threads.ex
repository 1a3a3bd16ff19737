defmodule CallbackThread.Threads do
  @moduledoc """
  Manages the threads of one worker: their states, and the queue of ready jobs.

  A thread is in one of these states, and has at most one job at a time:

  | state | kind of its slot | closure |
  |---|---|---|
  | ready, with a job in the queue | running | in the job |
  | given to a runner | running | with the runner |
  | waiting for a timer, or for a message and perhaps a timer | closure | a row in ETS |
  | the same, as a registered function | code of the function | none |

  A job whose thread has been cancelled is discarded when it is taken from the queue, because its
  key is invalid. Due timers are taken only while the queue is short, so a million units with the
  same due tick do not all become jobs at once.

  The functions never block, and send messages only to watchers of threads.
  """

  import CallbackThread.Outcome, only: [is_argument: 1]
  alias CallbackThread.{Clock, Functions, Inbox, Outcome, Ready, Runner, Slots, Watchers}

  # Kinds of slots; those of registered functions follow.
  @timer 2
  @receive 3

  @max_queue_for_timers 4_096

  @enforce_keys [:tally, :watchers, :base, :functions, :rows, :max_inbox]
  defstruct [
    :tally,
    :watchers,
    :base,
    :functions,
    :rows,
    :max_inbox,
    slots: Slots.new(),
    ready: %Ready{},
    inboxes: %{},
    counts: %{spawned: 0, ended: 0, crashed: 0, cancelled: 0, dropped: 0}
  ]

  @type t :: %__MODULE__{}
  @type key :: Slots.key()

  @doc """
  Returns a state without threads. The calling process is the worker. The options `:tally`,
  `:watchers` (a table), `:base`, `:functions` and `:max_inbox` are required.
  """
  @spec new(keyword()) :: t()
  def new(options) do
    %__MODULE__{
      tally: options[:tally],
      watchers: Watchers.new(options[:watchers]),
      base: options[:base],
      functions: options[:functions],
      rows: :ets.new(:callback_thread_closures, [:set, :private]),
      max_inbox: options[:max_inbox]
    }
  end

  # -- starting threads --

  @doc "Starts a thread with `fun` as its first job, and returns its id."
  @spec start(t(), CallbackThread.callback(), CallbackThread.Parked.reply_to()) ::
          {CallbackThread.id(), t()}
  def start(threads, fun, reply_to) do
    {key, threads} = create(threads)
    threads = %{threads | watchers: Watchers.reply_to(threads.watchers, key, reply_to)}
    {id(key), push(threads, {key, {:start, fun}})}
  end

  @doc """
  Starts a thread for each argument, which waits as a registered function for `ms` milliseconds, or
  for a message with `:infinity`. Returns the id of the last thread, or `nil` without arguments.
  """
  @spec start_registered(t(), CallbackThread.code(), [integer()], timeout()) ::
          {{:ok, CallbackThread.id() | nil} | {:error, :no_such_function}, t()}
  def start_registered(threads, code, arguments, ms) do
    if Functions.member?(threads.functions, code) do
      due = if ms == :infinity, do: :never, else: Clock.due(threads.base, ms)
      kind = Functions.kind(code, ms == :infinity)

      Enum.reduce(arguments, {{:ok, nil}, threads}, fn argument, {_, threads}
                                                       when is_argument(argument) ->
        {key, threads} = create(threads)
        {{:ok, id(key)}, park(threads, key, kind, due, argument)}
      end)
    else
      {{:error, :no_such_function}, threads}
    end
  end

  defp create(threads) do
    {key, slots} = Slots.claim(threads.slots)
    :atomics.add(threads.tally, 1, 1)
    {key, count(%{threads | slots: slots}, :spawned)}
  end

  # -- jobs --

  @doc "Returns the number of jobs in the queue, including those of cancelled threads."
  @spec ready(t()) :: non_neg_integer()
  def ready(threads), do: threads.ready.count

  @doc """
  Returns the number of jobs in the queue that start a thread, including those of cancelled threads.
  """
  @spec fresh(t()) :: non_neg_integer()
  def fresh(threads), do: threads.ready.fresh

  @doc "Takes up to `room` jobs of threads that have not ended, oldest first."
  @spec take_jobs(t(), non_neg_integer()) :: {[Runner.job()], t()}
  def take_jobs(threads, room), do: take_jobs(threads, room, [])

  defp take_jobs(threads, 0, jobs), do: {Enum.reverse(jobs), threads}

  defp take_jobs(threads, room, jobs) do
    case Ready.pop(threads.ready) do
      :empty ->
        {Enum.reverse(jobs), threads}

      {{key, _} = job, ready} ->
        threads = %{threads | ready: ready}

        if alive?(threads, key),
          do: take_jobs(threads, room - 1, [job | jobs]),
          else: take_jobs(threads, room, jobs)
    end
  end

  @doc "Puts unexecuted jobs back at the front of the queue."
  @spec return_jobs(t(), [Runner.job()]) :: t()
  def return_jobs(threads, jobs), do: %{threads | ready: Ready.return_jobs(threads.ready, jobs)}

  # -- timers --

  @doc """
  Returns the earliest tick at which a thread may be due, or `nil` if there are no timers or the
  queue is full.
  """
  @spec next_due(t()) :: Clock.tick() | nil
  def next_due(%{ready: %{count: count}}) when count >= @max_queue_for_timers, do: nil
  def next_due(threads), do: Slots.next_due(threads.slots)

  @doc "Makes due threads ready, until the queue is full."
  @spec fire(t()) :: t()
  def fire(threads) do
    due = next_due(threads)
    now = due && Clock.tick(threads.base)

    if due != nil and due <= now do
      {taken, slots} =
        Slots.take_due(threads.slots, now, @max_queue_for_timers - threads.ready.count)

      Enum.reduce(taken, %{threads | slots: slots}, &wake/2)
    else
      threads
    end
  end

  defp wake({key, kind, _}, threads) when kind in [@timer, @receive] do
    case :ets.take(threads.rows, key) do
      [{_, fun}] -> push(threads, {key, {:due, fun}})
      [{_, _handler, on_timeout}] -> push(threads, {key, {:due, on_timeout}})
    end
  end

  defp wake({key, kind, argument}, threads) do
    {code, _receiving} = Functions.from_kind(kind)
    push(threads, {key, {:registered, code, argument, :due}})
  end

  # -- outcomes of callbacks --

  @doc """
  Continues a thread according to the outcome of its callback. Ignores the outcome if the thread
  has been cancelled.
  """
  @spec apply_outcome(t(), key(), Outcome.t()) :: t()
  def apply_outcome(threads, key, {replies, next}) do
    if alive?(threads, key) do
      Watchers.replies(threads.watchers, key, replies)
      continue(threads, key, next, replies)
    else
      threads
    end
  end

  defp continue(threads, key, {:after, due, fun}, _) do
    :ets.insert(threads.rows, {key, fun})
    park(threads, key, @timer, due, 0)
  end

  defp continue(threads, key, {:receive, handler, due, on_timeout}, _) do
    case Inbox.take(threads.inboxes, key) do
      {:ok, message, inboxes} ->
        push(%{threads | inboxes: inboxes}, {key, {:message, handler, message}})

      :empty ->
        row = if on_timeout, do: {key, handler, on_timeout}, else: {key, handler}
        :ets.insert(threads.rows, row)
        park(threads, key, @receive, due, 0)
    end
  end

  defp continue(threads, key, {:registered, code, argument, due, receiving}, _) do
    with true <- receiving, {:ok, message, inboxes} <- Inbox.take(threads.inboxes, key) do
      push(
        %{threads | inboxes: inboxes},
        {key, {:registered, code, argument, {:message, message}}}
      )
    else
      _ -> park(threads, key, Functions.kind(code, receiving), due, argument)
    end
  end

  defp continue(threads, key, {:ended, reason}, replies),
    do: finish(threads, key, reason, replies)

  # -- messages --

  @doc """
  Delivers a message to a thread, or stores it in the inbox if the thread is not waiting for one.
  Returns `{:error, :full}` if the inbox is full.
  """
  @spec deliver(t(), key(), term()) :: {:ok | {:error, :no_such_thread | :full}, t()}
  def deliver(threads, key, message) do
    case Slots.fetch(threads.slots, key) do
      nil ->
        {{:error, :no_such_thread}, threads}

      {kind, _} when kind in [:running, @timer] ->
        store_message(threads, key, message)

      {@receive, _} ->
        [row] = :ets.take(threads.rows, key)
        Slots.unpark(threads.slots, key)
        {:ok, push(threads, {key, {:message, elem(row, 1), message}})}

      {kind, argument} ->
        deliver_to_registered(threads, key, message, Functions.from_kind(kind), argument)
    end
  end

  defp deliver_to_registered(threads, key, message, {code, true}, argument) do
    Slots.unpark(threads.slots, key)
    {:ok, push(threads, {key, {:registered, code, argument, {:message, message}}})}
  end

  defp deliver_to_registered(threads, key, message, {_code, false}, _),
    do: store_message(threads, key, message)

  defp store_message(threads, key, message) do
    case Inbox.put(threads.inboxes, key, message, threads.max_inbox) do
      {:ok, inboxes} -> {:ok, %{threads | inboxes: inboxes}}
      :full -> {{:error, :full}, count(threads, :dropped)}
    end
  end

  # -- watchers --

  @doc "Adds a monitor to a thread, unless the thread has ended."
  @spec monitor(t(), key(), pid(), reference()) ::
          {{:ok, reference()} | {:error, :no_such_thread}, t()}
  def monitor(threads, key, pid, ref) do
    if alive?(threads, key) do
      {{:ok, ref}, %{threads | watchers: Watchers.monitor(threads.watchers, key, pid, ref)}}
    else
      {{:error, :no_such_thread}, threads}
    end
  end

  @doc "Removes the monitor or the spawner with the given reference."
  @spec demonitor(t(), key(), reference()) :: :ok
  def demonitor(threads, key, ref), do: Watchers.demonitor(threads.watchers, key, ref)

  # -- ending threads --

  @doc """
  Returns `:running` for a thread that is running or has a ready job, `:waiting` for one that waits,
  and `nil` for one that has ended.
  """
  @spec place(t(), key()) :: :running | :waiting | nil
  def place(threads, key) do
    case Slots.fetch(threads.slots, key) do
      nil -> nil
      {:running, _} -> :running
      _ -> :waiting
    end
  end

  @doc "Returns whether a thread has not ended."
  @spec alive?(t(), key()) :: boolean()
  def alive?(threads, key), do: Slots.fetch(threads.slots, key) != nil

  @doc """
  Ends a thread as cancelled. The thread must not have ended, and if it is running, its job must
  have been taken from its runner.
  """
  @spec cancel(t(), key()) :: t()
  def cancel(threads, key) do
    place = place(threads, key)
    if place == :waiting, do: :ets.delete(threads.rows, key)
    threads = finish(threads, key, :cancelled, [])

    # The job of the thread may be in the queue.
    if place == :running,
      do: %{threads | ready: Ready.forget(threads.ready, &alive?(threads, &1))},
      else: threads
  end

  @doc "Ends a thread, which must be alive, whose runner has ended in the middle of a callback."
  @spec end_lost(t(), key(), term()) :: t()
  def end_lost(threads, key, reason), do: finish(threads, key, reason, [])

  defp finish(threads, key, reason, replies) do
    :atomics.sub(threads.tally, 1, 1)

    threads = %{
      threads
      | slots: Slots.release(threads.slots, key),
        inboxes: Map.delete(threads.inboxes, key),
        watchers: Watchers.ended(threads.watchers, id(key), reason, replies != [])
    }

    count(threads, counter(reason))
  end

  defp counter(reason) when reason in [:normal, :shutdown], do: :ended
  defp counter(:cancelled), do: :cancelled
  defp counter({:shutdown, _}), do: :ended
  defp counter(_), do: :crashed

  # -- memory and statistics --

  @doc "Returns the number of chunks dropped since the last call of `collected/1`."
  @spec dropped_chunks(t()) :: non_neg_integer()
  def dropped_chunks(threads), do: threads.slots.dropped

  @doc "Records that the worker is about to collect its garbage."
  @spec collected(t()) :: t()
  def collected(threads), do: %{threads | slots: %{threads.slots | dropped: 0}}

  @doc "Returns statistics for `CallbackThread.stats/1`."
  @spec stats(t()) :: map()
  def stats(threads) do
    Map.merge(threads.counts, %{
      alive: :atomics.get(threads.tally, 1),
      waiting: threads.ready.fresh,
      ready: threads.ready.count,
      chunks: Slots.chunks(threads.slots),
      rows: :ets.info(threads.rows, :size),
      inboxes: map_size(threads.inboxes),
      watchers: Watchers.size(threads.watchers)
    })
  end

  @doc "Returns the id of a thread of the calling worker."
  @spec id(key()) :: CallbackThread.id()
  def id(key), do: {:callback_thread, self(), key}

  defp park(threads, key, kind, due, argument),
    do: %{threads | slots: Slots.park(threads.slots, key, kind, due, argument)}

  defp push(threads, job), do: %{threads | ready: Ready.push(threads.ready, job)}

  defp count(threads, counter),
    do: %{threads | counts: Map.update!(threads.counts, counter, &(&1 + 1))}
end
