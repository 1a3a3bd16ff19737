defmodule CallbackThread.Receptor do
  @moduledoc """
  Accepts spawn requests and distributes them to its workers in turn.

  `new/1` starts a receptor outside of the caller's supervision tree and returns its pid:

      receptor = CallbackThread.Receptor.new()
      send(receptor, {:spawn, fn id -> IO.inspect(id) end})

  A message `{:spawn, fun}` is a raw request: it is never refused, returns no id, and is limited
  only by memory. If too many requests are waiting, `CallbackThread.spawn/2` blocks, and
  `CallbackThread.try_spawn/2` returns an error.

  In a supervision tree, with `CallbackThread.Receptor` as a child:

      children = [{CallbackThread.Receptor, name: MyApp.Threads, workers: 4}]

  ## Options

    * `:workers` - the number of workers; by default one for each scheduler
    * `:max_waiting` - the maximum number of accepted spawn requests of a worker that have not
      started; raw ones count, but are accepted beyond it, too (default 10,000)
    * `:max_inbox` - the maximum number of messages stored for a thread that is not waiting for
      one (default 1,000)
    * `:max_runners` - the maximum number of processes that each worker has for blocked callbacks
      (by default, all workers together may use half of the BEAM's process limit)
    * `:name` - a name to register the receptor under

  ## What happens when a worker dies

  The supervisor starts another worker. The threads of the dead one end with the reason
  `{:worker_down, reason}`, and their monitors and spawners are notified. The log has the number
  of threads and the number of lost raw requests, which the receptor had sent but the worker had
  not read. At most 1,024 are lost, because the receptor sends no more until the worker asks for
  more. The receptor keeps all other requests.

  After more than 20 deaths within 5 seconds, the receptor ends, too, and so do its registered
  functions: their codes are invalid for its replacement.
  """

  use GenServer, shutdown: :infinity
  require Logger

  alias CallbackThread.{Directory, Functions, Options, Worker}

  @idle_ms 100
  # Maximum number of raw requests sent to a worker before it asks for more. This keeps the
  # mailbox of the worker short: outcomes of callbacks do not queue after a million requests, and
  # no more requests than these are lost if the worker dies.
  @initial_credit 1_024

  @type option ::
          {:workers, pos_integer()}
          | {:max_waiting, pos_integer()}
          | {:max_inbox, pos_integer()}
          | {:max_runners, pos_integer()}
          | {:name, GenServer.name()}

  @doc """
  Starts a receptor without a supervisor, and returns its pid. `CallbackThread.stop/1` ends it.

  Raises `ArgumentError` if an option is unknown or invalid, or the receptor cannot be started, for
  example because its name is taken.

      iex> receptor = CallbackThread.Receptor.new(workers: 1, max_waiting: 100)
      iex> CallbackThread.stats(receptor).workers
      1
      iex> CallbackThread.stop(receptor)
      iex> CallbackThread.Receptor.new(workers: 0)
      ** (ArgumentError) workers: needs an integer of at least 1, got: 0
  """
  @spec new([option()]) :: pid()
  def new(options \\ []) do
    Options.read!(options)

    child = %{
      id: __MODULE__,
      start: {__MODULE__, :start_link, [options]},
      restart: :temporary,
      shutdown: :infinity
    }

    case DynamicSupervisor.start_child(CallbackThread.Receptors, child) do
      {:ok, pid} -> pid
      {:error, reason} -> raise ArgumentError, "no receptor was started: #{inspect(reason)}"
    end
  end

  @doc """
  Starts a receptor linked to the calling process, usually a supervisor.

  Raises `ArgumentError` if an option is unknown or invalid.
  """
  @spec start_link([option()]) :: GenServer.on_start()
  def start_link(options \\ []) do
    options = Options.read!(options)
    GenServer.start_link(__MODULE__, options, Keyword.take(options, [:name]))
  end

  @doc """
  Returns a child specification. Its id is the `:name` of the receptor, if given, so that a
  supervisor can have several receptors.
  """
  @spec child_spec([option()]) :: Supervisor.child_spec()
  def child_spec(options),
    do: Map.put(super(options), :id, Keyword.get(options, :name, __MODULE__))

  @impl true
  def init(options) do
    # Ensures that workers end before the receptor.
    Process.flag(:trap_exit, true)

    case Directory.enroll(options[:workers]) do
      {:ok, directory} -> start_workers(options, directory)
      {:error, reason} -> {:stop, reason}
    end
  end

  defp start_workers(options, directory) do
    functions = Functions.new()

    children =
      for index <- 0..(options[:workers] - 1) do
        arguments = Keyword.merge(options, receptor: self(), index: index, functions: functions)
        Supervisor.child_spec({Worker, arguments}, id: index)
      end

    # Workers die only of bugs or kills. A few deaths must not end the other workers.
    {:ok, supervisor} =
      Supervisor.start_link(children, strategy: :one_for_one, max_restarts: 20, max_seconds: 5)

    {:ok, new_state(supervisor, directory, functions, options[:workers])}
  end

  # `workers` maps indexes to `{pid, tally, credit}`, `credit` is the sum of all credits, and
  # `held` has the requests that wait for credit.
  defp new_state(supervisor, directory, functions, count) do
    %{
      supervisor: supervisor,
      directory: directory,
      functions: functions,
      workers: %{},
      count: count,
      turn: 0,
      credit: 0,
      held: :queue.new()
    }
  end

  @impl true
  def handle_info({:spawn, fun}, state) when is_function(fun, 0) or is_function(fun, 1) do
    {:noreply, take(state, fun), @idle_ms}
  end

  def handle_info({:spawn, other}, state) do
    Logger.warning(
      "#{inspect(self())} ignores {:spawn, #{inspect(other)}}: not a function of one argument or none"
    )

    {:noreply, state, @idle_ms}
  end

  # The previous worker has died, even if its `:DOWN` message has not arrived.
  def handle_info({:worker_up, index, pid, tally}, state) do
    state = retire(state, index)
    Process.monitor(pid)

    {:noreply, put_in(state.workers[index], {pid, tally, @initial_credit}) |> forward_held(),
     @idle_ms}
  end

  def handle_info({:credit, index, pid, credit}, state) do
    case state.workers do
      %{^index => {^pid, tally, remaining}} ->
        state = put_in(state.workers[index], {pid, tally, remaining + credit})
        {:noreply, forward_held(state), @idle_ms}

      _ ->
        {:noreply, state, @idle_ms}
    end
  end

  # The routes and watchers of the workers are lost with the directory.
  def handle_info({:DOWN, directory, :process, _pid, _reason}, %{directory: directory} = state),
    do: {:stop, {:shutdown, :directory_down}, state}

  def handle_info({:DOWN, _monitor, :process, pid, _reason}, state) do
    case Enum.find(state.workers, fn {_, {worker, _, _}} -> worker == pid end) do
      {index, _} -> {:noreply, state |> retire(index) |> forward_held(), @idle_ms}
      nil -> {:noreply, state, @idle_ms}
    end
  end

  # The supervisor has given up, or a process that was linked to the receptor has crashed.
  def handle_info({:EXIT, _pid, reason}, state) when reason != :normal,
    do: {:stop, reason, state}

  # After many raw requests, the heap is mostly garbage.
  def handle_info(:timeout, state), do: {:noreply, state, :hibernate}
  def handle_info(_other, state), do: {:noreply, state, @idle_ms}

  @impl true
  def handle_call({:register, name, fun}, _from, state) do
    {:reply, Functions.put(state.functions, name, fun), state, @idle_ms}
  end

  # For callers on other nodes, which cannot read the directory.
  def handle_call(:workers, _from, state),
    do: {:reply, Directory.workers(self()), state, @idle_ms}

  # An unknown message must not end the threads of others.
  def handle_call(request, _from, state) do
    Logger.warning("#{inspect(self())} refuses a call of #{inspect(request)}")
    {:reply, {:error, :unknown_request}, state, @idle_ms}
  end

  @impl true
  def handle_cast(request, state) do
    Logger.warning("#{inspect(self())} ignores a cast of #{inspect(request)}")
    {:noreply, state, @idle_ms}
  end

  @impl true
  def terminate(_reason, state) do
    stop_workers(state.supervisor)
    unread = Enum.sum(for {_, {_, tally, _}} <- state.workers, do: unread(tally))

    case unread + :queue.len(state.held) do
      0 -> :ok
      count -> Logger.info("#{count} raw spawn requests had not begun when their receptor ended")
    end
  end

  defp stop_workers(supervisor) do
    Supervisor.stop(supervisor, :shutdown)
  catch
    # It is already shutting down.
    :exit, _ -> :ok
  end

  defp take(state, fun) do
    if :queue.is_empty(state.held) and state.credit > 0 do
      forward(state, fun)
    else
      %{state | held: :queue.in(fun, state.held)}
    end
  end

  defp forward_held(state) do
    state = %{state | credit: Enum.sum(for {_, {_, _, credit}} <- state.workers, do: credit)}
    forward_queue(state)
  end

  defp forward_queue(%{credit: 0} = state), do: state

  defp forward_queue(state) do
    case :queue.out(state.held) do
      {{:value, fun}, held} -> forward_queue(forward(%{state | held: held}, fun))
      {:empty, _} -> state
    end
  end

  # Forwards to the next worker with credit. At least one has credit.
  defp forward(state, fun) do
    turn = rem(state.turn + 1, state.count)

    case state.workers do
      %{^turn => {pid, tally, credit}} when credit > 0 ->
        :atomics.add(tally, 3, 1)
        send(pid, {:spawn, fun})
        workers = %{state.workers | turn => {pid, tally, credit - 1}}
        %{state | turn: turn, workers: workers, credit: state.credit - 1}

      _ ->
        forward(%{state | turn: turn}, fun)
    end
  end

  defp retire(state, index) do
    case Map.pop(state.workers, index) do
      {nil, _} ->
        state

      {{pid, tally, _}, workers} ->
        report_unread(unread(tally), pid)
        %{state | workers: workers}
    end
  end

  defp unread(tally), do: :atomics.get(tally, 3) - :atomics.get(tally, 2)

  defp report_unread(0, _pid), do: :ok

  defp report_unread(count, pid) do
    Logger.error(
      "#{count} raw spawn requests were lost in the mailbox of the dead worker #{inspect(pid)}"
    )
  end
end
