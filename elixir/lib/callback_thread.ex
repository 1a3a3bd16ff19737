defmodule CallbackThread do
  @moduledoc """
  Callback threads: units of concurrency without a stack.

  A callback thread is a function that is called when there is something to do. While it waits, there is
  neither a stack nor a process: only what it will do next. A callback says what it waits for by what it
  returns, as `CallbackThread.Outcome` lists:

      receptor = CallbackThread.Receptor.new()

      {:ok, id} =
        CallbackThread.spawn(receptor, fn _id ->
          {:after, 1_000, fn ->
            {:receive, fn message -> IO.inspect(message) end}
          end}
        end)

      CallbackThread.send(id, :hello)

  A receptor owns workers, one for each scheduler. Each worker holds threads; callbacks run in processes of its own.
  A thread's callbacks run one at a time and in order; those of different threads run in any order.

  ## Two storages

  *Closures* are the general form. A waiting closure is a slot of 24 bytes and a row in ETS, about 145 bytes with one
  captured integer.

  *Registered functions* with one 64-bit integer as their whole state are the small form. The waiting unit is its slot of 24
  bytes and nothing else. See `register/2` and `spawn_registered/4`.

  ## What a callback may do

  Anything a function may. One that returns promptly costs no process. One that blocks (sleeps, calls a server)
  is found out within a few milliseconds; the callbacks behind it are then run by another process, so
  nobody waits for it. But it costs a BEAM process for as long as it blocks. `{:after, ms, fun}` costs none.

  Callbacks share processes, so links, monitors and the process dictionary do not last from one callback to the
  next, and messages to `self()` are lost when the callback returns. Use `send/2` with a thread's id.

  A crash ends only the thread whose callback crashed. It is logged, and told to its monitors.

  ## Ids

  An id names one thread for ever. When the thread has ended, the id is an error
  (`{:error, :no_such_thread}`), also after its slot has been used again. A worker that has died and been replaced knows none of
  its predecessor's ids.
  """

  import CallbackThread.Outcome, only: [is_callback: 1, is_argument: 1, is_milliseconds: 1]
  alias CallbackThread.{Directory, Receptor, Runner}

  # Registered spawns per message, so that a worker can do other things between.
  @bulk 4_096

  @typedoc "Names one thread for ever."
  @opaque id :: {:callback_thread, pid(), non_neg_integer()}
  @typedoc "A receptor: its pid or its registered name."
  @type receptor :: GenServer.server()
  @typedoc "What a registered function is called by."
  @type code :: non_neg_integer()
  @typedoc "The first callback; an argument is the thread's id."
  @type callback :: (() -> term()) | (id() -> term())

  defguardp is_delay(ms) when ms == :infinity or is_milliseconds(ms)

  @doc """
  Starts a thread. Waits while all workers have `:max_waiting` requests that have not begun to run.

  A request that waits is not withdrawn when its process dies.

      iex> receptor = CallbackThread.Receptor.new()
      iex> {:ok, id} = CallbackThread.spawn(receptor, fn -> {:receive, fn _ -> :done end} end)
      iex> CallbackThread.alive?(id)
      true
      iex> CallbackThread.stop(receptor)
  """
  @spec spawn(receptor(), callback()) :: {:ok, id()} | {:error, :no_such_receptor | :worker_down}
  def spawn(receptor, fun) when is_callback(fun),
    do: patiently(receptor, fun, nil)

  @doc "Starts a thread, or refuses when all workers have `:max_waiting` requests that have not begun to run."
  @spec try_spawn(receptor(), callback()) ::
          {:ok, id()} | {:error, :full | :no_such_receptor | :worker_down}
  def try_spawn(receptor, fun) when is_callback(fun),
    do: to_a_worker(receptor, {:spawn, fun, nil, :try})

  @doc """
  Starts a thread whose replies the calling process gets, as messages `{:reply, ref, value}`.

  When the thread ends otherwise than by a reply, the caller gets `{:DOWN, ref, :callback_thread, id, reason}`.
  """
  @spec spawn_reply(receptor(), callback()) ::
          {:ok, id(), reference()} | {:error, :no_such_receptor | :worker_down}
  def spawn_reply(receptor, fun) when is_callback(fun) do
    ref = make_ref()

    with {:ok, id} <- patiently(receptor, fun, {self(), ref}),
         do: {:ok, id, ref}
  end

  @doc "Waits for the next reply to a `spawn_reply/2`."
  @spec await(reference(), timeout()) :: {:ok, term()} | {:error, term()}
  def await(ref, timeout \\ 5_000) do
    receive do
      {:reply, ^ref, value} -> {:ok, value}
      {:DOWN, ^ref, :callback_thread, _id, reason} -> {:error, reason}
    after
      timeout -> {:error, :timeout}
    end
  end

  @doc """
  Starts a thread and waits for its first reply. After a timeout the thread is cancelled.

      iex> receptor = CallbackThread.Receptor.new()
      iex> CallbackThread.call(receptor, fn -> {:after, 10, fn -> {:reply, 42} end} end)
      {:ok, 42}
      iex> CallbackThread.call(receptor, fn -> :no_reply end)
      {:error, :normal}
      iex> CallbackThread.stop(receptor)
  """
  @spec call(receptor(), callback(), timeout()) :: {:ok, term()} | {:error, term()}
  def call(receptor, fun, timeout \\ 5_000) do
    with {:ok, id, ref} <- spawn_reply(receptor, fun) do
      result = await(ref, timeout)
      if result == {:error, :timeout}, do: cancel(id)
      demonitor(id, ref)
      drop_replies(ref)
      result
    end
  end

  # After `demonitor/2` no more can come.
  defp drop_replies(ref) do
    receive do
      {:reply, ^ref, _} -> drop_replies(ref)
    after
      0 -> :ok
    end
  end

  @doc """
  Registers a function under itself as its name, and returns its code.

  It is called as `fun.(integer)` or `fun.(integer, event)`; the event is `:due` or `{:message, message}`. There may be about 4,000.
  """
  @spec register(receptor(), (integer() -> term()) | (integer(), event :: term() -> term())) ::
          {:ok, code()} | {:error, :too_many_functions}
  def register(receptor, fun), do: register(receptor, fun, fun)

  @doc "Registers a function under a name. If the name has a function, the new one takes its place and its code."
  @spec register(receptor(), name :: term(), function()) ::
          {:ok, code()} | {:error, :too_many_functions}
  def register(receptor, name, fun) when is_function(fun, 1) or is_function(fun, 2) do
    GenServer.call(receptor, {:register, name, fun})
  end

  @doc """
  Starts a thread that waits as a registered function and its integer, in 24 bytes.

  `after: ms` says when it is called first, `after: :infinity` that it waits for a message; at once by default.
  It is not counted as a waiting request: it has its place already.

      iex> receptor = CallbackThread.Receptor.new()
      iex> me = self()
      iex> {:ok, code} = CallbackThread.register(receptor, fn n, event -> Kernel.send(me, {n, event}) end)
      iex> {:ok, id} = CallbackThread.spawn_registered(receptor, code, 7, after: :infinity)
      iex> CallbackThread.send(id, :hello)
      :ok
      iex> receive do message -> message end
      {7, {:message, :hello}}
      iex> CallbackThread.stop(receptor)
  """
  @spec spawn_registered(receptor(), code(), integer(), after: non_neg_integer() | :infinity) ::
          {:ok, id()} | {:error, :no_such_function | :no_such_receptor | :worker_down}
  def spawn_registered(receptor, code, argument, options \\ []) when is_argument(argument) do
    ms = Keyword.get(options, :after, 0)
    check_delay(ms)
    to_a_worker(receptor, {:registered, code, [argument], ms})
  end

  @doc """
  Starts one thread for each argument, as `spawn_registered/4`, and says how many. Their ids are not kept.

  An error says nothing about the threads before it.
  """
  @spec spawn_registered_many(receptor(), code(), Enumerable.t(),
          after: non_neg_integer() | :infinity
        ) ::
          {:ok, non_neg_integer()}
          | {:error, :no_such_function | :no_such_receptor | :worker_down}
  def spawn_registered_many(receptor, code, arguments, options \\ []) do
    ms = Keyword.get(options, :after, 0)
    check_delay(ms)

    arguments
    |> Stream.map(fn argument when is_argument(argument) -> argument end)
    |> Stream.chunk_every(@bulk)
    |> Enum.reduce_while({:ok, 0}, fn bulk, {:ok, count} ->
      case to_a_worker(receptor, {:registered, code, bulk, ms}) do
        {:ok, _last} -> {:cont, {:ok, count + length(bulk)}}
        error -> {:halt, error}
      end
    end)
  end

  @doc """
  Sends a message to a thread. `:ok` means that the thread has it or will have it, unless it ends first.

  Messages of one sender arrive in order. `{:error, :full}`: the thread is not waiting for a message and has `:max_inbox` of them.
  """
  @spec send(id(), term()) :: :ok | {:error, :no_such_thread | :full}
  def send({:callback_thread, _, _} = id, message), do: to_thread(id, &{:send, &1, message})

  @doc "Sends a message without waiting for the answer. If the thread has ended or is full, the message is dropped."
  @spec cast(id(), term()) :: :ok
  def cast({:callback_thread, worker, key}, message),
    do: GenServer.cast(worker, {:send, key, message})

  @doc """
  Ends a thread, with the reason `:cancelled`. If one of its callbacks is running, the callback is killed in the middle.
  """
  @spec cancel(id()) :: :ok | {:error, :no_such_thread}
  def cancel(id), do: to_thread(id, &{:cancel, &1})

  @doc """
  When the thread ends, the calling process gets `{:DOWN, ref, :callback_thread, id, reason}`.

  The reason is `:normal`, `:cancelled`, `{:worker_down, reason}`, `{:bad_return, value}`, or that with which a process would have ended.
  """
  @spec monitor(id()) :: {:ok, reference()} | {:error, :no_such_thread}
  def monitor(id) do
    {pid, ref} = {self(), make_ref()}
    to_thread(id, &{:monitor, &1, pid, ref})
  end

  @doc "Ends a monitor, and removes its message if it has arrived."
  @spec demonitor(id(), reference()) :: :ok
  def demonitor(id, ref) do
    to_thread(id, &{:demonitor, &1, ref})

    receive do
      {:DOWN, ^ref, :callback_thread, _, _} -> :ok
    after
      0 -> :ok
    end
  end

  @doc "Has the thread not ended?"
  @spec alive?(id()) :: boolean()
  def alive?(id), do: to_thread(id, &{:alive?, &1}) == true

  @doc "The thread whose callback is running in the calling process; `nil` elsewhere."
  @spec current() :: id() | nil
  def current, do: Runner.current()

  @doc "How many threads there are."
  @spec count(receptor()) :: non_neg_integer()
  def count(receptor), do: stats(receptor).alive

  @doc """
  Figures of all workers together.

  `alive`; `spawned`, `ended`, `crashed`, `cancelled` since the workers started; `waiting` requests that have not begun to run, `parked`
  spawners; `ready` callbacks; `runners` (processes); `chunks` of 256 slots and `rows` in ETS; `inboxes` that hold messages, `dropped`
  messages; `watchers` (monitors and spawners who want replies); `workers`.
  """
  @spec stats(receptor()) :: %{atom() => non_neg_integer()}
  def stats(receptor) do
    all = for worker <- all_workers(receptor), {:ok, stats} <- [ask(worker, :stats)], do: stats
    Enum.reduce(all, %{alive: 0, workers: length(all)}, &add_figures/2)
  end

  defp add_figures(one, other), do: Map.merge(one, other, fn _, a, b -> a + b end)

  @doc "Ends a receptor with its workers and threads."
  @spec stop(receptor()) :: :ok
  def stop(receptor), do: GenServer.stop(receptor)

  defp check_delay(ms) when is_delay(ms), do: :ok

  defp check_delay(ms),
    do: raise(ArgumentError, "after: needs milliseconds or :infinity, got: #{inspect(ms)}")

  # -- the way to a worker --

  # Waits in the queue of one worker only when all are full.
  defp patiently(receptor, fun, reply_to) do
    with {:error, :full} <- to_a_worker(receptor, {:spawn, fun, reply_to, :try}) do
      to_a_worker(receptor, {:spawn, fun, reply_to, :wait})
    end
  end

  # A worker that is down has not seen the request, and one that is full has refused it; then it is the next one's turn.
  defp to_a_worker(receptor, request) do
    case workers(receptor) do
      [] -> {:error, :no_such_receptor}
      workers -> try_workers(workers, request, {:error, :worker_down})
    end
  end

  defp try_workers([], _request, error), do: error

  defp try_workers([worker | others], request, _error) do
    case ask(worker, request) do
      {:ok, {:error, :full} = full} -> try_workers(others, request, full)
      {:ok, answer} -> answer
      {:error, :noproc} -> try_workers(others, request, {:error, :worker_down})
      {:error, _} -> {:error, :worker_down}
    end
  end

  defp to_thread({:callback_thread, worker, key}, request) do
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

  # Asking for figures must not change whose turn it is.
  defp all_workers(receptor) do
    case GenServer.whereis(receptor) do
      pid when is_pid(pid) and node(pid) == node() -> Directory.all(pid)
      nil -> []
      remote -> remote_workers(remote)
    end
  end

  # On another node, whose directory cannot be read from here.
  defp remote_workers(receptor) do
    case ask(receptor, :workers) do
      {:ok, workers} -> workers
      {:error, _} -> []
    end
  end

  defp ask(server, request) do
    {:ok, GenServer.call(server, request, :infinity)}
  catch
    :exit, {reason, {GenServer, :call, _}} -> {:error, reason}
  end

  @doc false
  @spec child_spec([Receptor.option()]) :: Supervisor.child_spec()
  defdelegate child_spec(options), to: Receptor
end
