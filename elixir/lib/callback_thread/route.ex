defmodule CallbackThread.Route do
  @moduledoc """
  Routes a caller's request to a worker, and handles workers that are full or dead.

  The code runs in the calling process, which reads `CallbackThread.Directory` directly. Workers
  never block, so waiting for an answer has no timeout; only waiting for room can have a deadline.
  """

  alias CallbackThread.Directory

  @typedoc "A point in monotonic time, in milliseconds, or `:infinity`."
  @type deadline :: integer() | :infinity

  @doc "Returns whether the terms can be the parts of an id. Other terms would crash the worker."
  defguard is_id(worker, key) when is_pid(worker) and is_integer(key)

  @doc "Returns the deadline that is `ms` milliseconds from now."
  @spec deadline(timeout()) :: deadline()
  def deadline(:infinity), do: :infinity
  def deadline(ms), do: System.monotonic_time(:millisecond) + ms

  @doc "Returns the milliseconds until a deadline, at least 0, or `:infinity`."
  @spec remaining_ms(deadline()) :: timeout()
  def remaining_ms(:infinity), do: :infinity
  def remaining_ms(deadline), do: max(0, deadline - System.monotonic_time(:millisecond))

  @doc """
  Starts a thread. If all workers are full, waits in the queue of one of them until the deadline.
  A finite deadline requires a `reply_to`, whose reference withdraws the request.
  """
  @spec spawn_waiting(
          CallbackThread.receptor(),
          CallbackThread.callback(),
          CallbackThread.Parked.reply_to(),
          deadline()
        ) :: {:ok, CallbackThread.id()} | {:error, :no_such_receptor | :worker_down | :timeout}
  def spawn_waiting(receptor, fun, reply_to, deadline) do
    with {:error, :full} <- ask_next_worker(receptor, {:spawn, fun, reply_to, :try}) do
      ask_next_worker(receptor, {:spawn, fun, reply_to, :wait}, deadline)
    end
  end

  @doc """
  Sends a request to the next worker in turn, and returns the answer. If that worker is down or
  full, which means that it has not accepted the request, tries the others in order. Only a request
  `{:spawn, fun, {pid, ref}, :wait}` can have a finite deadline.
  """
  @spec ask_next_worker(CallbackThread.receptor(), tuple(), deadline()) :: term()
  def ask_next_worker(receptor, request, deadline \\ :infinity) do
    case workers(receptor) do
      [] -> {:error, :no_such_receptor}
      workers -> try_workers(workers, request, deadline, {:error, :worker_down})
    end
  end

  defp try_workers([], _request, _deadline, error), do: error

  defp try_workers([worker | others], request, deadline, _error) do
    case ask_until(worker, request, deadline) do
      {:ok, {:error, :full} = full} -> try_workers(others, request, deadline, full)
      {:ok, answer} -> answer
      {:error, :noproc} -> try_workers(others, request, deadline, {:error, :worker_down})
      {:error, _} -> {:error, :worker_down}
    end
  end

  defp ask_until(worker, request, :infinity), do: ask(worker, request)

  defp ask_until(worker, {:spawn, _, {_, ref}, :wait} = request, deadline) do
    id = :gen_server.send_request(worker, request)

    case :gen_server.wait_response(id, remaining_ms(deadline)) do
      :timeout -> withdraw(worker, ref, id)
      response -> answer(response)
    end
  end

  # The worker answers at once, unless it has accepted the request already.
  defp withdraw(worker, ref, id) do
    GenServer.cast(worker, {:withdraw, ref})
    id |> :gen_server.wait_response(:infinity) |> answer()
  end

  defp answer({:reply, answer}), do: {:ok, answer}
  defp answer({:error, {reason, _worker}}), do: {:error, reason}

  @doc """
  Sends the request that `request` makes from the thread's key to the thread's worker, and returns
  the answer, or `{:error, :no_such_thread}` if the worker has ended.
  """
  @spec ask_thread(CallbackThread.id(), (CallbackThread.Slots.key() -> tuple())) :: term()
  def ask_thread({:callback_thread, worker, key}, request) when is_id(worker, key) do
    case ask(worker, request.(key)) do
      {:ok, answer} -> answer
      {:error, _} -> {:error, :no_such_thread}
    end
  end

  defp workers(receptor) do
    case GenServer.whereis(receptor) do
      pid when is_pid(pid) and node(pid) == node() -> Directory.workers(pid)
      nil -> []
      remote -> remote_workers(remote)
    end
  end

  @doc """
  Returns all workers of a receptor; `[]` if there is no receptor. Does not change which of them is
  next in turn, except for a receptor on another node.
  """
  @spec all_workers(CallbackThread.receptor()) :: [pid()]
  def all_workers(receptor) do
    case GenServer.whereis(receptor) do
      pid when is_pid(pid) and node(pid) == node() -> Directory.all(pid)
      nil -> []
      remote -> remote_workers(remote)
    end
  end

  # The directory of another node cannot be read from this one.
  defp remote_workers(receptor) do
    case ask(receptor, :workers) do
      {:ok, workers} -> workers
      {:error, _} -> []
    end
  end

  @doc """
  Calls a server and returns `{:ok, answer}`, or `{:error, reason}` if the server does not exist
  (`:noproc`) or ends before it answers.
  """
  @spec ask(GenServer.server(), term()) :: {:ok, term()} | {:error, term()}
  def ask(server, request) do
    {:ok, GenServer.call(server, request, :infinity)}
  catch
    :exit, {reason, {GenServer, :call, _}} -> {:error, reason}
  end
end
