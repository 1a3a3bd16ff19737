defmodule CallbackThread.Runner do
  @moduledoc """
  The process in which callbacks run.

  A worker has one runner for batches. The runner claims each job of its batch by raising a counter that it
  shares with the worker; the worker takes the rest away by setting the counter beyond the end. Both are
  one atomic operation, so a job is run by exactly one of them. Every outcome is sent on its own, because the
  next job may block.

  A runner that blocks keeps what it has claimed and ends with it. So does one whose callback has left a link
  behind: a later exit signal through that link would end somebody else's callback.

  A runner is linked to its worker and does not trap exits, so it dies with it, even in the middle of a callback.
  """

  alias CallbackThread.{Functions, Outcome}
  require Logger

  @context {__MODULE__, :context}
  @thread {__MODULE__, :thread}

  @typedoc "What is to be run, for which thread."
  @type job :: {CallbackThread.Slots.key(), work()}
  @type work ::
          {:start | :due, function()}
          | {:message, function(), term()}
          | {:registered, CallbackThread.code(), integer(), :due | {:message, term()}}
  @typedoc "What every runner of a worker knows."
  @type context :: %{
          worker: pid(),
          base: CallbackThread.Clock.base(),
          functions: :ets.tid(),
          tag: reference()
        }

  @doc "Starts a runner for batches."
  @spec start(context()) :: pid()
  def start(context), do: spawn_link(fn -> serve(context) end)

  @doc "Starts a runner for one job."
  @spec start_solo(context(), job()) :: pid()
  def start_solo(context, job), do: spawn_link(fn -> run_timed(job, context) end)

  @doc "Gives a runner that has nothing to do a tuple of jobs, and the counter to claim them with."
  @spec give(pid(), context(), tuple(), :atomics.atomics_ref()) :: :ok
  def give(runner, context, jobs, claim) do
    send(runner, {context.tag, :run, jobs, claim})
    :ok
  end

  @doc "Ends a runner that has nothing to do."
  @spec stop(pid(), context()) :: :ok
  def stop(runner, context) do
    send(runner, {context.tag, :stop})
    :ok
  end

  @doc "The thread whose callback the calling process runs."
  @spec current() :: CallbackThread.id() | nil
  def current, do: Process.get(@thread)

  defp serve(%{tag: tag, worker: worker} = context) do
    receive do
      {^tag, :run, jobs, claim} ->
        run_batch(jobs, claim, context)
        serve(context)

      {^tag, :stop} ->
        :ok

      {:EXIT, ^worker, reason} ->
        exit(reason)

      # Late replies and such, meant for callbacks that have returned.
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

  # The time tells the worker whether callbacks still block.
  defp run_timed({key, _} = job, context) do
    began = System.monotonic_time(:microsecond)
    outcome = run(job, context)

    send(
      context.worker,
      {:outcome, self(), key, outcome, System.monotonic_time(:microsecond) - began}
    )
  end

  # One callback must not see what another one left in the process.
  defp clean_up(%{worker: worker}) do
    :erlang.erase()
    Process.flag(:trap_exit, false)
    if Process.info(self(), :links) != {:links, [worker]}, do: exit(:normal)
  end

  defp run({key, work}, context) do
    id = {:callback_thread, context.worker, key}
    Process.put(@thread, id)
    Process.put(@context, context)

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

  # The reasons are those with which a process would have ended.
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
