defmodule CallbackThread.Worker do
  @moduledoc """
  A process that holds threads: it handles requests, gives ready jobs to runners, and sets timers.

  `CallbackThread.Threads` has the states of the threads, and `CallbackThread.RunnerPool` runs their
  callbacks in other processes, so that the worker never blocks. The worker handles each message
  in two steps. First, it changes the state as requested. Then, in a turn, it makes due threads
  ready, starts ready jobs, and accepts waiting spawners. A turn is bounded: it takes at most
  4,096 due threads and starts at most one batch of jobs.

  When a worker dies, its threads end with it, and `CallbackThread.Directory` notifies their
  watchers.
  """

  use GenServer, restart: :permanent
  require Logger

  alias CallbackThread.{Clock, Directory, Parked, RunnerPool, Threads}

  # Number of received raw requests after which the worker asks for more, unless more than twice
  # as many jobs are ready. The number is far below the receptor's credit.
  @requests_per_ask 256
  @check_interval_ms 1
  # Numbers of jobs and of words of heap above which an idle worker collects its garbage.
  @min_gc_jobs 256
  @min_gc_heap_words 32_768
  @min_gc_dropped_chunks 8

  @enforce_keys [:receptor, :index, :tally, :base, :threads, :pool, :max_waiting]
  defstruct [
    :receptor,
    :index,
    :tally,
    :base,
    :threads,
    :pool,
    :max_waiting,
    # number of raw requests since the worker last asked the receptor for more
    requests_since_ask: 0,
    parked: %Parked{},
    timer: nil,
    check_scheduled: false,
    # whether a `:turn` message is in the mailbox
    turn_requested: false,
    since_gc: 0
  ]

  @doc false
  def start_link(options), do: GenServer.start_link(__MODULE__, options)

  @impl true
  def init(options) do
    # Runners are linked to the worker, which must not die with them.
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
       base: base,
       threads: Threads.new([tally: tally, watchers: watchers, base: base] ++ options),
       pool: RunnerPool.new(context, options[:max_runners]),
       max_waiting: options[:max_waiting]
     }}
  end

  # -- requests --

  @impl true
  def handle_call({:spawn, fun, reply_to, mode}, from, state) do
    cond do
      room?(state) -> {:noreply, state |> accept({fun, reply_to, from}) |> turn()}
      mode == :try -> {:reply, {:error, :full}, state}
      true -> {:noreply, %{state | parked: Parked.push(state.parked, {fun, reply_to, from})}}
    end
  end

  def handle_call({:registered, code, arguments, ms}, _from, state) do
    {reply, threads} = Threads.start_registered(state.threads, code, arguments, ms)
    state = %{state | threads: threads, since_gc: state.since_gc + length(arguments)}
    {:reply, reply, state |> turn() |> schedule_check()}
  end

  def handle_call({:send, key, message}, _from, state) do
    {reply, threads} = Threads.deliver(state.threads, key, message)
    {:reply, reply, turn(%{state | threads: threads})}
  end

  def handle_call({:cancel, key}, _from, state) do
    case Threads.place(state.threads, key) do
      nil ->
        {:reply, {:error, :no_such_thread}, state}

      place ->
        state = interrupt(state, key, place)
        {:reply, :ok, turn(%{state | threads: Threads.cancel(state.threads, key)})}
    end
  end

  def handle_call({:monitor, key, pid, ref}, _from, state) do
    {reply, threads} = Threads.monitor(state.threads, key, pid, ref)
    {:reply, reply, %{state | threads: threads}}
  end

  def handle_call({:demonitor, key, ref}, _from, state),
    do: {:reply, Threads.demonitor(state.threads, key, ref), state}

  def handle_call({:alive?, key}, _from, state),
    do: {:reply, Threads.alive?(state.threads, key), state}

  def handle_call(:stats, _from, state) do
    stats =
      Map.merge(Threads.stats(state.threads), %{
        parked: Parked.count(state.parked),
        runners: RunnerPool.runners(state.pool)
      })

    {:reply, stats, state}
  end

  @impl true
  def handle_cast({:send, key, message}, state) do
    {_reply, threads} = Threads.deliver(state.threads, key, message)
    {:noreply, turn(%{state | threads: threads})}
  end

  # A spawner has timed out. If its request has already been accepted, it has its answer.
  def handle_cast({:withdraw, ref}, state) do
    case Parked.withdraw(state.parked, ref) do
      :unknown ->
        {:noreply, state}

      {{_, _, from}, parked} ->
        GenServer.reply(from, {:error, :timeout})
        {:noreply, %{state | parked: parked}}
    end
  end

  @impl true
  def handle_info({:outcome, runner, key, outcome, us}, state) do
    state = %{
      state
      | pool: RunnerPool.reported(state.pool, runner, key, us),
        threads: Threads.apply_outcome(state.threads, key, outcome),
        since_gc: state.since_gc + 1
    }

    {:noreply, state |> turn() |> schedule_check()}
  end

  def handle_info({:spawn, fun}, state) do
    :atomics.add(state.tally, 2, 1)
    {_id, state} = start(%{state | requests_since_ask: state.requests_since_ask + 1}, fun, nil)
    {:noreply, turn(state)}
  end

  def handle_info({:timeout, timer, :due}, %{timer: {timer, _}} = state),
    do: {:noreply, turn(%{state | timer: nil})}

  def handle_info(:check_blocked, %{check_scheduled: true} = state) do
    state = %{state | check_scheduled: false}

    if RunnerPool.busy?(state.pool),
      do: {:noreply, state |> check_blocked() |> turn()},
      else: idle(turn(state))
  end

  def handle_info(:turn, state), do: {:noreply, turn(%{state | turn_requested: false})}

  def handle_info({:EXIT, runner, reason}, state) do
    {lost, rest, pool} = RunnerPool.exited(state.pool, runner)
    state = return_jobs(%{state | pool: pool}, rest)
    {:noreply, lost |> Enum.reduce(state, &end_lost(&2, &1, reason)) |> turn()}
  end

  def handle_info(_other, state), do: {:noreply, state}

  # -- a turn: the second step of each message --

  defp turn(state) do
    %{state | threads: Threads.fire(state.threads)}
    |> dispatch()
    |> admit()
    |> request_turn()
    |> arm()
    |> ask_for_more()
  end

  # Hands ready jobs to the runners.
  defp dispatch(%{threads: %{ready: %{count: 0}}} = state), do: state

  defp dispatch(state) do
    case RunnerPool.room(state.pool) do
      0 ->
        state

      room ->
        {jobs, threads} = Threads.take_jobs(state.threads, room)
        schedule_check(%{state | threads: threads, pool: RunnerPool.run(state.pool, jobs)})
    end
  end

  # Accepts waiting spawners while there is room.
  defp admit(state) do
    with true <- room?(state), {entry, parked} <- Parked.pop(state.parked) do
      admit(accept(%{state | parked: parked}, entry))
    else
      _ -> state
    end
  end

  # If every job gets its own process, there may be room for more jobs, but other messages are
  # handled first.
  defp request_turn(%{turn_requested: true} = state), do: state

  defp request_turn(state) do
    if Threads.ready(state.threads) > 0 and RunnerPool.room(state.pool) > 0 do
      send(self(), :turn)
      %{state | turn_requested: true}
    else
      state
    end
  end

  # Keeps one timer for the earliest due tick. While the queue is long, outcomes drive the worker.
  defp arm(state) do
    due = Threads.next_due(state.threads)

    case state.timer do
      _ when due == nil ->
        state

      {_, armed} when armed <= due ->
        state

      nil ->
        %{state | timer: set_timer(due, state)}

      {timer, _} ->
        :erlang.cancel_timer(timer, async: true, info: false)
        %{state | timer: set_timer(due, state)}
    end
  end

  defp set_timer(due, state),
    do: {:erlang.start_timer(due + state.base, self(), :due, abs: true), due}

  defp ask_for_more(%{requests_since_ask: requests_since_ask} = state)
       when requests_since_ask < @requests_per_ask,
       do: state

  defp ask_for_more(state) do
    if Threads.ready(state.threads) > 2 * @requests_per_ask do
      state
    else
      send(state.receptor, {:credit, state.index, self(), state.requests_since_ask})
      %{state | requests_since_ask: 0}
    end
  end

  defp schedule_check(%{check_scheduled: true} = state), do: state

  defp schedule_check(state) do
    Process.send_after(self(), :check_blocked, @check_interval_ms)
    %{state | check_scheduled: true}
  end

  defp check_blocked(state) do
    {rest, pool} = RunnerPool.check_blocked(state.pool)
    %{state | pool: pool} |> return_jobs(rest) |> schedule_check()
  end

  # No job has been running for a while, so the worker frees memory. Hibernation shrinks its heap
  # to the minimum, which matters if a million threads are waiting.
  defp idle(%{threads: %{ready: %{count: 0}}} = state) do
    {_, heap} = Process.info(self(), :total_heap_size)

    should_collect =
      (state.since_gc > @min_gc_jobs and heap > @min_gc_heap_words) or
        Threads.dropped_chunks(state.threads) > @min_gc_dropped_chunks

    state = %{state | pool: RunnerPool.stop_idle_runner(state.pool)}

    if should_collect,
      do:
        {:noreply, %{state | since_gc: 0, threads: Threads.collected(state.threads)}, :hibernate},
      else: {:noreply, state}
  end

  defp idle(state), do: {:noreply, state}

  # -- starting and ending threads --

  defp room?(state), do: Threads.fresh(state.threads) < state.max_waiting

  defp accept(state, {fun, reply_to, from}) do
    {id, state} = start(state, fun, reply_to)
    GenServer.reply(from, {:ok, id})
    state
  end

  defp start(state, fun, reply_to) do
    {id, threads} = Threads.start(state.threads, fun, reply_to)
    {id, %{state | threads: threads, since_gc: state.since_gc + 1}}
  end

  defp interrupt(state, _key, :waiting), do: state

  defp interrupt(state, key, :running) do
    {rest, pool} = RunnerPool.interrupt(state.pool, key)
    return_jobs(%{state | pool: pool}, rest)
  end

  # A runner ended in the middle of a callback: it was killed, or a process linked to it crashed.
  defp end_lost(state, key, reason) do
    if Threads.alive?(state.threads, key) do
      id = Threads.id(key)
      Logger.error("#{inspect(id)} ended with the process it ran in: #{inspect(reason)}")
      %{state | threads: Threads.end_lost(state.threads, key, reason)}
    else
      state
    end
  end

  defp return_jobs(state, []), do: state
  defp return_jobs(state, jobs), do: %{state | threads: Threads.return_jobs(state.threads, jobs)}
end
