defmodule CallbackThread.Runner do
  @moduledoc """
  The processes in which callbacks run.

  A worker has one runner for batches. The runner claims each job of its batch by incrementing a
  counter that it shares with the worker. The worker revokes the remaining jobs by setting the
  counter beyond the end. Both are atomic operations, so each job is either claimed or revoked.
  The runner sends each outcome separately, because the next job may block.

  A callback must not see state that another callback left in the process. The runner removes
  messages and clears the process dictionary. If a callback leaves a link, a monitor, a registered
  name, another priority or the like, the runner ends, and the next callback gets a new one: an
  exit signal through a link, for example, would end the callback of another thread.

  A blocked runner keeps its claimed job and ends after it. Runners are linked to their worker and
  do not trap exits, so they die with the worker, even in the middle of a callback (unless the
  callback traps exits).
  """

  alias CallbackThread.{Functions, Outcome}
  require Logger

  @thread {__MODULE__, :thread}
  # Properties of a process that a callback can change.
  @properties [
    :links,
    :monitors,
    :registered_name,
    :trap_exit,
    :priority,
    :group_leader,
    :max_heap_size,
    :min_heap_size
  ]

  @typedoc "Work to run, with the key of its thread."
  @type job :: {CallbackThread.Slots.key(), work()}
  @type work ::
          {:start | :due, function()}
          | {:message, function(), term()}
          | {:registered, CallbackThread.code(), integer(), :due | {:message, term()}}
  @typedoc "Data shared by all runners of a worker."
  @type context :: %{
          worker: pid(),
          base: CallbackThread.Clock.base(),
          functions: :ets.tid(),
          tag: reference()
        }

  @doc "Starts a runner for batches, linked to the calling worker."
  @spec start(context()) :: pid()
  def start(context) do
    spawn_link(fn -> serve(Map.put(context, :properties, Process.info(self(), @properties))) end)
  end

  @doc "Starts a runner that ends after one job, linked to the calling worker."
  @spec start_solo(context(), job()) :: pid()
  def start_solo(context, job), do: spawn_link(fn -> run_timed(job, context) end)

  @doc "Gives an idle runner a tuple of jobs, and the counter for claiming them, which must be 0."
  @spec give(pid(), context(), tuple(), :atomics.atomics_ref()) :: :ok
  def give(runner, context, jobs, claim) do
    send(runner, {context.tag, :run, jobs, claim})
    :ok
  end

  @doc "Ends an idle runner."
  @spec stop(pid(), context()) :: :ok
  def stop(runner, context) do
    send(runner, {context.tag, :stop})
    :ok
  end

  @doc "Returns the id of the thread whose callback the calling process is running, or `nil`."
  @spec current() :: CallbackThread.id() | nil
  def current, do: Process.get(@thread)

  defp serve(%{tag: tag} = context) do
    receive do
      {^tag, :run, jobs, claim} ->
        run_batch(jobs, claim, context)
        serve(context)

      {^tag, :stop} ->
        :ok

      # A late message for a callback that has returned.
      _other ->
        serve(context)
    end
  end

  defp run_batch(jobs, claim, context) do
    index = :atomics.add_get(claim, 1, 1)

    if index <= tuple_size(jobs) do
      {key, _} = job = elem(jobs, index - 1)
      send(context.worker, {:outcome, self(), key, run(job, context), 0})
      clean_up(context)
      run_batch(jobs, claim, context)
    end
  end

  # From the time, the worker learns whether callbacks still block.
  defp run_timed({key, _} = job, context) do
    began = System.monotonic_time(:microsecond)
    outcome = run(job, context)

    send(
      context.worker,
      {:outcome, self(), key, outcome, System.monotonic_time(:microsecond) - began}
    )
  end

  defp clean_up(%{tag: tag, properties: properties}) do
    :erlang.erase()
    drop_messages(tag)
    if Process.info(self(), @properties) != properties, do: exit(:normal)
  end

  # Drops all messages except the worker's, which may be the next batch.
  defp drop_messages(tag) do
    receive do
      message when not is_tuple(message) when message == {} when elem(message, 0) != tag ->
        drop_messages(tag)
    after
      0 -> :ok
    end
  end

  defp run({key, work}, context) do
    id = {:callback_thread, context.worker, key}
    Process.put(@thread, id)

    try do
      call(work, id, context)
    catch
      kind, reason -> {[], {:ended, ended(kind, reason, __STACKTRACE__, id)}}
    else
      value -> Outcome.read(value, context, code(work))
    end
  end

  defp call({:registered, code, argument, event}, _id, context) do
    case Functions.fetch!(context.functions, code) do
      fun when is_function(fun, 2) -> fun.(argument, event)
      fun -> fun.(argument)
    end
  end

  defp call({:message, handler, message}, _id, _context) when is_function(handler, 1),
    do: handler.(message)

  defp call({:message, handler, message}, id, _context), do: handler.(message, id)
  defp call({_, fun}, _id, _context) when is_function(fun, 0), do: fun.()
  defp call({_, fun}, id, _context), do: fun.(id)

  defp code({:registered, code, _, _}), do: code
  defp code(_), do: nil

  # The reasons are those with which a process would exit.
  defp ended(:exit, reason, _stack, _id) when reason in [:normal, :shutdown], do: reason
  defp ended(:exit, {:shutdown, _} = reason, _stack, _id), do: reason
  defp ended(:exit, reason, stack, id), do: report(:exit, reason, stack, id, reason)

  defp ended(:throw, value, stack, id),
    do: report(:throw, value, stack, id, {{:nocatch, value}, stack})

  defp ended(:error, reason, stack, id) do
    error = Exception.normalize(:error, reason, stack)
    report(:error, error, stack, id, {error, stack})
  end

  defp report(kind, reason, stack, id, ended) do
    Logger.error(fn -> "#{inspect(id)} ended: " <> Exception.format(kind, reason, stack) end)
    ended
  end
end
