defmodule CallbackThread.Worker do
  @moduledoc """
  Holds threads: which there are, what each waits for, and what is ready to run.

  A worker never runs a callback itself, so it never blocks; `CallbackThread.Crew` does. A thread is in
  one of these places, and has at most one job at a time:

  | place | its slot's kind | its closure |
  |---|---|---|
  | ready: a job in the queue | running | in the job |
  | given to a runner | running | with the runner |
  | waiting for a timer, or for a message and perhaps a timer | closure | a row in ETS |
  | the same, as a registered function | the function's code | none |

  The queue of ready jobs is checked when a job is taken from it: if the thread has been cancelled, its key is
  worth nothing. Due timers are taken only while the queue is short, so a million units that fall due together do
  not all become jobs at once.

  When a worker dies its threads end with it; `CallbackThread.Directory` tells those who watch them.
  """

  use GenServer, restart: :permanent
  require Logger

  import CallbackThread.Outcome, only: [is_argument: 1]
  alias CallbackThread.{Clock, Crew, Directory, Functions, Inbox, Ready, Slots}

  # Kinds of slots; those of registered functions follow.
  @timer 2
  @receive 3

  @short_queue 4_096
  # Raw requests after which more are asked for, while fewer than that are ready; well below the receptor's credit.
  @ask_after 256
  @look_ms 1
  # Jobs and words of heap from which a worker that has become idle collects its garbage.
  @much_work 256
  @much_heap 32_768

  defstruct [
    :receptor,
    :index,
    :tally,
    :watchers,
    :base,
    :functions,
    :rows,
    :crew,
    :max_waiting,
    :max_inbox,
    slots: Slots.new(),
    ready: %Ready{},
    # raw requests since the receptor was last asked for more
    owed: 0,
    # spawners that wait for room
    parked: :queue.new(),
    inboxes: %{},
    # how many rows `watchers` has had; 0 spares every end a look
    watched: 0,
    timer: nil,
    looking: false,
    since_gc: 0,
    counts: %{spawned: 0, ended: 0, crashed: 0, cancelled: 0, dropped: 0}
  ]

  @doc false
  def start_link(options), do: GenServer.start_link(__MODULE__, options)

  @impl true
  def init(options) do
    # Runners are linked, and must not take the worker with them.
    Process.flag(:trap_exit, true)
    tally = :atomics.new(3, signed: true)
    base = Clock.base()
    context = %{worker: self(), base: base, functions: options[:functions], tag: make_ref()}
    watchers = Directory.join(options[:receptor], options[:index], tally)
    send(options[:receptor], {:worker_up, options[:index], self(), tally})

    {:ok,
     %__MODULE__{
       receptor: options[:receptor],
       index: options[:index],
       tally: tally,
       watchers: watchers,
       base: base,
       functions: options[:functions],
       rows: :ets.new(:callback_thread_closures, [:set, :private]),
       crew: Crew.new(context, options[:max_runners]),
       max_waiting: options[:max_waiting],
       max_inbox: options[:max_inbox]
     }}
  end

  # -- requests --

  @impl true
  def handle_call({:spawn, fun, reply_to, mode}, from, state) do
    cond do
      state.ready.fresh < state.max_waiting -> accept(state, fun, reply_to, from)
      mode == :try -> {:reply, {:error, :full}, state}
      true -> {:noreply, %{state | parked: :queue.in({fun, reply_to, from}, state.parked)}}
    end
  end

  def handle_call({:registered, code, arguments, ms}, _from, state) do
    if Functions.member?(state.functions, code) do
      {reply, state} = spawn_registered(state, code, arguments, ms)
      {:reply, reply, state |> turn() |> start_looking()}
    else
      {:reply, {:error, :no_such_function}, state}
    end
  end

  def handle_call({:send, key, message}, _from, state) do
    {reply, state} = deliver(state, key, message)
    {:reply, reply, turn(state)}
  end

  def handle_call({:cancel, key}, _from, state) do
    case Slots.fetch(state.slots, key) do
      nil ->
        {:reply, {:error, :no_such_thread}, state}

      {kind, _} ->
        {:reply, :ok, state |> interrupt(key, kind) |> finish(key, :cancelled, []) |> turn()}
    end
  end

  def handle_call({:monitor, key, pid, ref}, _from, state) do
    if Slots.fetch(state.slots, key) do
      {:reply, {:ok, ref}, watch(state, key, pid, ref, :monitor)}
    else
      {:reply, {:error, :no_such_thread}, state}
    end
  end

  def handle_call({:demonitor, key, ref}, _from, state) do
    :ets.match_delete(state.watchers, {key, :_, ref, :_})
    {:reply, :ok, state}
  end

  def handle_call({:alive?, key}, _from, state),
    do: {:reply, Slots.fetch(state.slots, key) != nil, state}

  def handle_call(:stats, _from, state), do: {:reply, stats(state), state}

  @impl true
  def handle_cast({:send, key, message}, state) do
    {_reply, state} = deliver(state, key, message)
    {:noreply, turn(state)}
  end

  @impl true
  def handle_info({:outcome, runner, key, outcome, us}, state) do
    state = %{
      state
      | crew: Crew.reported(state.crew, runner, key, us),
        since_gc: state.since_gc + 1
    }

    # A cancelled thread's last outcome means nothing any more.
    state = if Slots.fetch(state.slots, key), do: apply_outcome(state, key, outcome), else: state
    {:noreply, state |> turn() |> start_looking()}
  end

  def handle_info({:spawn, fun}, state) do
    :atomics.add(state.tally, 2, 1)
    {_id, state} = start(%{state | owed: state.owed + 1}, fun, nil)
    {:noreply, turn(state)}
  end

  def handle_info({:timeout, timer, :due}, %{timer: {timer, _}} = state) do
    {:noreply, turn(%{state | timer: nil})}
  end

  def handle_info(:look, %{looking: true} = state) do
    state = %{state | looking: false}
    if Crew.busy?(state.crew), do: {:noreply, state |> look() |> turn()}, else: idle(turn(state))
  end

  def handle_info(:more, state), do: {:noreply, turn(state)}

  def handle_info({:EXIT, runner, reason}, state) do
    {lost, rest, crew} = Crew.exited(state.crew, runner)
    state = give_back(%{state | crew: crew}, rest)
    {:noreply, lost |> Enum.reduce(state, &lose(&2, &1, reason)) |> turn()}
  end

  def handle_info(_other, state), do: {:noreply, state}

  # -- one turn: what follows from a change --

  defp turn(state), do: state |> fire() |> dispatch() |> admit() |> arm() |> ask_for_more()

  # Takes threads whose time has come.
  defp fire(state) do
    due = Slots.next_due(state.slots)

    if due != nil and state.ready.count < @short_queue and due <= Clock.tick(state.base) do
      {taken, slots} =
        Slots.take_due(state.slots, Clock.tick(state.base), @short_queue - state.ready.count)

      Enum.reduce(taken, %{state | slots: slots}, &wake/2)
    else
      state
    end
  end

  defp wake({key, kind, _}, state) when kind in [@timer, @receive] do
    case :ets.take(state.rows, key) do
      [{_, fun}] -> push(state, {key, {:due, fun}})
      [{_, _handler, on_timeout}] -> push(state, {key, {:due, on_timeout}})
    end
  end

  defp wake({key, kind, argument}, state) do
    {code, _receiving} = Functions.from_kind(kind)
    push(state, {key, {:registered, code, argument, :due}})
  end

  # Gives ready jobs to the runners.
  defp dispatch(%{ready: %{count: 0}} = state), do: state

  defp dispatch(state) do
    case Crew.room(state.crew) do
      0 ->
        state

      room ->
        {jobs, state} = take_jobs(state, room, [])

        # Where every job gets a process there may be room for more at once, but others want a turn.
        if state.crew.solo and state.ready.count > 0, do: send(self(), :more)
        start_looking(%{state | crew: Crew.run(state.crew, jobs)})
    end
  end

  defp take_jobs(state, 0, jobs), do: {Enum.reverse(jobs), state}

  defp take_jobs(state, room, jobs) do
    case Ready.pop(state.ready) do
      :empty -> {Enum.reverse(jobs), state}
      {job, ready} -> take_job(%{state | ready: ready}, room, job, jobs)
    end
  end

  defp take_job(state, room, {key, _} = job, jobs) do
    case Slots.fetch(state.slots, key) do
      {:running, _} -> take_jobs(state, room - 1, [job | jobs])
      nil -> take_jobs(state, room, jobs)
    end
  end

  # Lets spawners in that waited for room.
  defp admit(state) do
    if state.ready.fresh < state.max_waiting and not :queue.is_empty(state.parked) do
      {{:value, {fun, reply_to, from}}, parked} = :queue.out(state.parked)
      {id, state} = start(%{state | parked: parked}, fun, reply_to)
      GenServer.reply(from, {:ok, id})
      state |> dispatch() |> admit()
    else
      state
    end
  end

  # Keeps one timer for the earliest due tick. While the queue is long, outcomes drive the worker.
  defp arm(state) do
    due = Slots.next_due(state.slots)

    case state.timer do
      _ when due == nil or state.ready.count >= @short_queue ->
        state

      {_, armed} when armed <= due ->
        state

      nil ->
        %{state | timer: set_timer(due, state)}

      {timer, _} ->
        :erlang.cancel_timer(timer, async: true, info: false) &&
          %{state | timer: set_timer(due, state)}
    end
  end

  defp set_timer(due, state),
    do: {:erlang.start_timer(due + state.base, self(), :due, abs: true), due}

  defp ask_for_more(%{owed: owed, ready: %{count: ready}} = state)
       when owed < @ask_after or ready > 2 * @ask_after do
    state
  end

  defp ask_for_more(state) do
    send(state.receptor, {:credit, state.index, self(), state.owed})
    %{state | owed: 0}
  end

  defp start_looking(%{looking: true} = state), do: state

  defp start_looking(state) do
    Process.send_after(self(), :look, @look_ms)
    %{state | looking: true}
  end

  defp look(state) do
    {rest, crew} = Crew.look(state.crew)
    %{state | crew: crew} |> give_back(rest) |> start_looking()
  end

  # Nothing has been running for a while. Memory is given back: hibernation leaves a heap with no room to
  # spare, which matters where a million threads wait.
  defp idle(%{ready: %{count: 0}} = state) do
    {_, heap} = Process.info(self(), :total_heap_size)
    much = (state.since_gc > @much_work and heap > @much_heap) or state.slots.dropped > 8
    state = %{state | crew: Crew.rest(state.crew)}

    if much do
      {:noreply, %{state | since_gc: 0, slots: %{state.slots | dropped: 0}}, :hibernate}
    else
      {:noreply, state}
    end
  end

  defp idle(state), do: {:noreply, state}

  # -- threads --

  defp accept(state, fun, reply_to, from) do
    {id, state} = start(state, fun, reply_to)
    GenServer.reply(from, {:ok, id})
    {:noreply, turn(state)}
  end

  defp start(state, fun, reply_to) do
    {key, state} = create(state)
    state = watch_replies(state, key, reply_to)
    {id(key), push(state, {key, {:start, fun}})}
  end

  defp create(state) do
    {key, slots} = Slots.claim(state.slots)
    :atomics.add(state.tally, 1, 1)
    {key, count(%{state | slots: slots, since_gc: state.since_gc + 1}, :spawned)}
  end

  defp spawn_registered(state, code, arguments, ms) do
    due = if ms == :infinity, do: :never, else: Clock.due(state.base, ms)
    kind = Functions.kind(code, ms == :infinity)

    Enum.reduce(arguments, {{:ok, nil}, state}, fn argument, {_, state}
                                                   when is_argument(argument) ->
      {key, state} = create(state)
      {{:ok, id(key)}, park(state, key, kind, due, argument)}
    end)
  end

  defp park(state, key, kind, due, argument) do
    %{state | slots: Slots.park(state.slots, key, kind, due, argument)}
  end

  defp apply_outcome(state, key, {replies, next}) do
    if replies != [], do: reply(state, key, replies)
    apply_next(state, key, next, replies)
  end

  defp apply_next(state, key, {:after, due, fun}, _) do
    :ets.insert(state.rows, {key, fun})
    park(state, key, @timer, due, 0)
  end

  defp apply_next(state, key, {:receive, handler, due, on_timeout}, _) do
    case Inbox.take(state.inboxes, key) do
      {:ok, message, inboxes} ->
        push(%{state | inboxes: inboxes}, {key, {:message, handler, message}})

      :empty ->
        :ets.insert(
          state.rows,
          if(on_timeout, do: {key, handler, on_timeout}, else: {key, handler})
        )

        park(state, key, @receive, due, 0)
    end
  end

  defp apply_next(state, key, {:registered, code, argument, due, receiving}, _) do
    with true <- receiving, {:ok, message, inboxes} <- Inbox.take(state.inboxes, key) do
      push(%{state | inboxes: inboxes}, {key, {:registered, code, argument, {:message, message}}})
    else
      _ -> park(state, key, Functions.kind(code, receiving), due, argument)
    end
  end

  defp apply_next(state, key, {:ended, reason}, replies), do: finish(state, key, reason, replies)

  defp deliver(state, key, message) do
    case Slots.fetch(state.slots, key) do
      nil ->
        {{:error, :no_such_thread}, state}

      {:running, _} ->
        keep(state, key, message)

      {@timer, _} ->
        keep(state, key, message)

      {@receive, _} ->
        {:ok, deliver_to_handler(state, key, message)}

      {kind, argument} ->
        deliver_to_registered(state, key, message, Functions.from_kind(kind), argument)
    end
  end

  defp keep(state, key, message) do
    case Inbox.put(state.inboxes, key, message, state.max_inbox) do
      {:ok, inboxes} -> {:ok, %{state | inboxes: inboxes}}
      :full -> {{:error, :full}, count(state, :dropped)}
    end
  end

  defp deliver_to_handler(state, key, message) do
    [row] = :ets.take(state.rows, key)
    Slots.unpark(state.slots, key)
    push(state, {key, {:message, elem(row, 1), message}})
  end

  defp deliver_to_registered(state, key, message, {code, true}, argument) do
    Slots.unpark(state.slots, key)
    {:ok, push(state, {key, {:registered, code, argument, {:message, message}}})}
  end

  defp deliver_to_registered(state, key, message, {_code, false}, _),
    do: keep(state, key, message)

  # -- ends --

  defp interrupt(state, key, :running) do
    {rest, crew} = Crew.interrupt(state.crew, key)
    give_back(%{state | crew: crew}, rest)
  end

  defp interrupt(state, key, _kind) do
    :ets.delete(state.rows, key)
    state
  end

  # A runner ended in the middle of a callback: it was killed, or a process linked to it crashed.
  defp lose(state, key, reason) do
    if Slots.fetch(state.slots, key) do
      Logger.error("#{inspect(id(key))} ended with the process it ran in: #{inspect(reason)}")
      finish(state, key, reason, [])
    else
      state
    end
  end

  defp finish(state, key, reason, replies) do
    :atomics.sub(state.tally, 1, 1)
    if state.watched > 0, do: tell(state, key, reason, replies)

    state = %{
      state
      | slots: Slots.release(state.slots, key),
        inboxes: Map.delete(state.inboxes, key)
    }

    state = if :ets.info(state.watchers, :size) == 0, do: %{state | watched: 0}, else: state
    count(state, counter(reason))
  end

  defp counter(reason) when reason in [:normal, :shutdown], do: :ended
  defp counter(:cancelled), do: :cancelled
  defp counter({:shutdown, _}), do: :ended
  defp counter(_), do: :crashed

  defp watch_replies(state, _key, nil), do: state
  defp watch_replies(state, key, {pid, ref}), do: watch(state, key, pid, ref, :reply)

  defp watch(state, key, pid, ref, kind) do
    :ets.insert(state.watchers, {key, pid, ref, kind})
    %{state | watched: state.watched + 1}
  end

  # A spawner that has its last reply need not be told of the end.
  defp tell(state, key, reason, replies) do
    for {_, pid, ref, kind} <- :ets.take(state.watchers, key),
        not (kind == :reply and reason == :normal and replies != []) do
      send(pid, {:DOWN, ref, :callback_thread, id(key), reason})
    end
  end

  defp reply(state, key, replies) do
    for {_, pid, ref, :reply} <- :ets.lookup(state.watchers, key),
        value <- replies,
        do: send(pid, {:reply, ref, value})
  end

  # -- the queue of ready jobs --

  defp push(state, job), do: %{state | ready: Ready.push(state.ready, job)}
  defp give_back(state, jobs), do: %{state | ready: Ready.give_back(state.ready, jobs)}

  # -- figures --

  defp count(state, counter), do: %{state | counts: Map.update!(state.counts, counter, &(&1 + 1))}
  defp id(key), do: {:callback_thread, self(), key}

  defp stats(state) do
    Map.merge(state.counts, %{
      alive: :atomics.get(state.tally, 1),
      waiting: state.ready.fresh,
      parked: :queue.len(state.parked),
      ready: state.ready.count,
      runners: Crew.runners(state.crew),
      chunks: Slots.chunks(state.slots),
      rows: :ets.info(state.rows, :size),
      inboxes: map_size(state.inboxes),
      watchers: :ets.info(state.watchers, :size)
    })
  end
end
