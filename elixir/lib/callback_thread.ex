defmodule CallbackThread do
  @moduledoc """
  Callback threads: units of concurrency without a stack.

  A callback thread is a sequence of callbacks. While it waits, it has neither a stack nor a
  process, only the function that it will run next. The return value of a callback is the next
  wait; `CallbackThread.Outcome` lists the possible values:

      receptor = CallbackThread.Receptor.new()

      {:ok, id} =
        CallbackThread.spawn(receptor, fn _id ->
          {:after, 1_000, fn ->
            {:receive, fn message -> IO.inspect(message) end}
          end}
        end)

      CallbackThread.send(id, :hello)

  A receptor owns workers, one for each scheduler. Each worker holds threads; callbacks run in
  separate processes of the worker. The callbacks of one thread run one at a time and in order;
  those of different threads run in any order.

  ## Two storages

  *Closures* are the general form. A waiting closure is a slot of 24 bytes and a row in ETS, about 148 bytes with one
  captured integer.

  *Registered functions* with one 64-bit integer as their whole state are the small form. A
  waiting unit takes only its slot of 24 bytes. See `register/2` and `spawn_registered/4`.

  ## Rules for callbacks

  A callback may do anything that a function may. One that returns promptly costs no process. The
  worker detects a callback that blocks (sleeps, calls a server) within a few milliseconds;
  another process then runs the callbacks queued after it, so they do not wait for it. But it
  occupies a BEAM process for as long as it blocks. `{:after, ms, fun}` occupies none.

  Callbacks share processes, so links, monitors, registered names and the process dictionary do not last from one callback to
  the next, and messages to `self()` are lost when the callback returns. Use `send/2` with a thread's id. A message that
  is sent to `self()` later than that, as by `Process.send_after/3`, may reach a callback of another thread.

  A crash ends only the thread whose callback crashed. It is logged, and its monitors are
  notified.

  A callback that waits in `spawn/2` or `call/3` for room in its own receptor occupies a process.
  If `:max_runners` callbacks of a worker wait in this way, they deadlock: use `try_spawn/2` in
  callbacks where that may happen.

  ## Ids

  An id names one thread forever. When the thread has ended, functions return `{:error,
  :no_such_thread}` for its id, even after its slot has been reused. Ids do not survive the death
  of their worker.

  ## Errors and units

  Times are milliseconds everywhere. Functions that start threads return

    * `{:error, :no_such_receptor}`: there is no receptor with this pid or name
    * `{:error, :worker_down}`: the worker died before it answered, or all workers are being replaced. The thread
      may have begun, but it has ended with its worker

  A thread continues when the process that started it ends, as a process does.
  """

  import CallbackThread.Outcome, only: [is_callback: 1, is_argument: 1, is_milliseconds: 1]
  import CallbackThread.Route, only: [is_id: 2]
  alias CallbackThread.{Receptor, Route, Runner}

  # Registered spawns per message. The worker handles other messages in between.
  @bulk 4_096

  @typedoc "Names one thread, forever."
  @opaque id :: {:callback_thread, pid(), non_neg_integer()}
  @typedoc "A receptor: its pid or its registered name."
  @type receptor :: GenServer.server()
  @typedoc "Identifies a registered function."
  @type code :: non_neg_integer()
  @typedoc "The first callback; an argument is the thread's id."
  @type callback :: (() -> term()) | (id() -> term())

  # The largest timeout of `receive`.
  @max_patience 0xFFFFFFFF
  @no_figures Map.new(
                [:alive, :spawned, :ended, :crashed, :cancelled, :waiting, :parked, :ready] ++
                  [:runners, :chunks, :rows, :inboxes, :dropped, :watchers],
                &{&1, 0}
              )

  defguardp is_delay(ms) when ms == :infinity or is_milliseconds(ms)

  defguardp is_patience(ms)
            when ms == :infinity or (is_integer(ms) and ms >= 0 and ms <= @max_patience)

  @doc """
  Starts a thread. Waits while all workers have `:max_waiting` pending requests.

  A pending request is not withdrawn when its process dies.

      iex> receptor = CallbackThread.Receptor.new()
      iex> {:ok, id} = CallbackThread.spawn(receptor, fn -> {:receive, fn _ -> :done end} end)
      iex> CallbackThread.alive?(id)
      true
      iex> CallbackThread.stop(receptor)
  """
  @spec spawn(receptor(), callback()) :: {:ok, id()} | {:error, :no_such_receptor | :worker_down}
  def spawn(receptor, fun) when is_callback(fun),
    do: Route.patiently(receptor, fun, nil, :infinity)

  @doc """
  Starts a thread, or returns `{:error, :full}` when all workers have `:max_waiting` pending
  requests.
  """
  @spec try_spawn(receptor(), callback()) ::
          {:ok, id()} | {:error, :full | :no_such_receptor | :worker_down}
  def try_spawn(receptor, fun) when is_callback(fun),
    do: Route.to_a_worker(receptor, {:spawn, fun, nil, :try})

  @doc """
  Starts a thread that sends its replies to the calling process, as messages `{:reply, ref,
  value}`.

  When the thread ends without a reply, the caller receives `{:DOWN, ref, :callback_thread, id,
  reason}`, with the reasons of `monitor/1`. Waits for room as `spawn/2` does. `demonitor/2` ends
  the replies.

      iex> receptor = CallbackThread.Receptor.new()
      iex> {:ok, _id, ref} =
      ...>   CallbackThread.spawn_reply(receptor, fn -> {:reply, 1, {:after, 10, fn -> {:reply, 2} end}} end)
      iex> {CallbackThread.await(ref), CallbackThread.await(ref)}
      {{:ok, 1}, {:ok, 2}}
      iex> CallbackThread.stop(receptor)
  """
  @spec spawn_reply(receptor(), callback()) ::
          {:ok, id(), reference()} | {:error, :no_such_receptor | :worker_down}
  def spawn_reply(receptor, fun) when is_callback(fun) do
    ref = make_ref()

    with {:ok, id} <- Route.patiently(receptor, fun, {self(), ref}, :infinity),
         do: {:ok, id, ref}
  end

  @doc """
  Waits for the next reply to a `spawn_reply/2`, at most `timeout` milliseconds (up to 2^32 - 1, or `:infinity`).

  Returns `{:error, reason}` if the thread has ended, with a reason of `monitor/1`, and `{:error,
  :timeout}` if it has not replied yet. The thread then continues.
  """
  @spec await(reference(), timeout()) :: {:ok, term()} | {:error, term()}
  def await(ref, timeout \\ 5_000) when is_reference(ref) and is_patience(timeout) do
    receive do
      {:reply, ^ref, value} -> {:ok, value}
      {:DOWN, ^ref, :callback_thread, _id, reason} -> {:error, reason}
    after
      timeout -> {:error, :timeout}
    end
  end

  @doc """
  Starts a thread and waits for its first reply, at most `timeout` milliseconds in total (up to
  2^32 - 1, or `:infinity`).

  After the timeout it cancels the thread, if it has started, and returns `{:error, :timeout}`. It
  returns another `{:error, reason}` if the thread could not start, or ended without a reply, with
  a reason of `monitor/1`. A thread that continues after its first reply is not cancelled; its
  later replies are dropped.

      iex> receptor = CallbackThread.Receptor.new()
      iex> CallbackThread.call(receptor, fn -> {:after, 10, fn -> {:reply, 42} end} end)
      {:ok, 42}
      iex> CallbackThread.call(receptor, fn -> :no_reply end)
      {:error, :normal}
      iex> CallbackThread.stop(receptor)
  """
  @spec call(receptor(), callback(), timeout()) :: {:ok, term()} | {:error, term()}
  def call(receptor, fun, timeout \\ 5_000) when is_callback(fun) and is_patience(timeout) do
    deadline = Route.deadline(timeout)
    ref = make_ref()

    with {:ok, id} <- Route.patiently(receptor, fun, {self(), ref}, deadline) do
      result = await(ref, Route.left(deadline))
      if result == {:error, :timeout}, do: cancel(id)
      demonitor(id, ref)
      drop_replies(ref)
      result
    end
  end

  # After `demonitor/2` no further reply can arrive.
  defp drop_replies(ref) do
    receive do
      {:reply, ^ref, _} -> drop_replies(ref)
    after
      0 -> :ok
    end
  end

  @doc """
  Registers a function under itself as its name, and returns its code.

  The function is called as `fun.(integer)` or `fun.(integer, event)`; the event is `:due` or
  `{:message, message}`. A receptor has at most 4,094 functions; beyond them the result is
  `{:error, :too_many_functions}`. A code is valid only for the receptor that returned it, and not
  for one that replaces it.
  """
  @spec register(receptor(), (integer() -> term()) | (integer(), event :: term() -> term())) ::
          {:ok, code()} | {:error, :too_many_functions | :no_such_receptor}
  def register(receptor, fun), do: register(receptor, fun, fun)

  @doc """
  Registers a function under a name, as `register/2`. A new function under an existing name
  replaces the old one and gets its code.
  """
  @spec register(receptor(), name :: term(), function()) ::
          {:ok, code()} | {:error, :too_many_functions | :no_such_receptor}
  def register(receptor, name, fun) when is_function(fun, 1) or is_function(fun, 2) do
    # A process that is not a receptor might never answer.
    with [_ | _] <- Route.all_workers(receptor),
         {:ok, answer} <- Route.ask(receptor, {:register, name, fun}) do
      answer
    else
      _ -> {:error, :no_such_receptor}
    end
  end

  @doc """
  Starts a thread that waits as a registered function and its integer, in 24 bytes.

  `after: ms` is the delay of the first call in milliseconds (up to 10^12, default 0); with
  `after: :infinity` the thread waits for a message. It has its slot already, so it does not count
  as a pending request, and memory is the only limit.

  Returns `{:error, :no_such_function}` if the receptor has no function with this code. Raises if
  the argument is not a 64-bit integer, or an option is unknown or invalid.

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
    ms = delay(options)
    Route.to_a_worker(receptor, {:registered, code, [argument], ms})
  end

  @doc """
  Starts one thread for each argument, as `spawn_registered/4` does, and returns their number,
  without their ids.

  Threads are started in groups of 4,096. Threads of earlier groups continue after an error or an
  argument that raises.
  """
  @spec spawn_registered_many(receptor(), code(), Enumerable.t(),
          after: non_neg_integer() | :infinity
        ) ::
          {:ok, non_neg_integer()}
          | {:error, :no_such_function | :no_such_receptor | :worker_down}
  def spawn_registered_many(receptor, code, arguments, options \\ []) do
    ms = delay(options)

    arguments
    |> Stream.map(fn argument when is_argument(argument) -> argument end)
    |> Stream.chunk_every(@bulk)
    |> Enum.reduce_while({:ok, 0}, fn bulk, {:ok, count} ->
      case Route.to_a_worker(receptor, {:registered, code, bulk, ms}) do
        {:ok, _last} -> {:cont, {:ok, count + length(bulk)}}
        error -> {:halt, error}
      end
    end)
  end

  @doc """
  Sends a message to a thread. `:ok` means that the thread receives it, unless the thread ends
  first.

  Messages of one sender arrive in order. Returns `{:error, :full}` if the thread is not waiting
  for a message and has `:max_inbox` messages.
  """
  @spec send(id(), term()) :: :ok | {:error, :no_such_thread | :full}
  def send(id, message), do: Route.to_thread(id, &{:send, &1, message})

  @doc """
  Sends a message without waiting for the worker. If the thread has ended or its inbox is full,
  the message is dropped.

  There is no back-pressure on a sender that is faster than the worker.
  """
  @spec cast(id(), term()) :: :ok
  def cast({:callback_thread, worker, key}, message) when is_id(worker, key),
    do: GenServer.cast(worker, {:send, key, message})

  @doc """
  Ends a thread with the reason `:cancelled`. If one of its callbacks is running, that callback is
  killed.
  """
  @spec cancel(id()) :: :ok | {:error, :no_such_thread}
  def cancel(id), do: Route.to_thread(id, &{:cancel, &1})

  @doc """
  Monitors a thread. When it ends, the calling process receives `{:DOWN, ref, :callback_thread,
  id, reason}`.

  The reason is `:normal`, `:cancelled`, `{:worker_down, reason}`, `{:bad_return, value}`, or the
  exit reason that a process would have. A monitor ends with the process that created it.

      iex> receptor = CallbackThread.Receptor.new()
      iex> {:ok, id} = CallbackThread.spawn(receptor, fn -> {:receive, fn _ -> exit(:shutdown) end} end)
      iex> {:ok, ref} = CallbackThread.monitor(id)
      iex> CallbackThread.send(id, :go)
      iex> receive do {:DOWN, ^ref, :callback_thread, ^id, reason} -> reason end
      :shutdown
      iex> CallbackThread.monitor(id)
      {:error, :no_such_thread}
      iex> CallbackThread.stop(receptor)
  """
  @spec monitor(id()) :: {:ok, reference()} | {:error, :no_such_thread}
  def monitor(id) do
    {pid, ref} = {self(), make_ref()}
    Route.to_thread(id, &{:monitor, &1, pid, ref})
  end

  @doc """
  Removes a monitor, or ends the replies of `spawn_reply/2`, and flushes its `:DOWN` message from
  the mailbox.
  """
  @spec demonitor(id(), reference()) :: :ok
  def demonitor(id, ref) when is_reference(ref) do
    Route.to_thread(id, &{:demonitor, &1, ref})

    receive do
      {:DOWN, ^ref, :callback_thread, _, _} -> :ok
    after
      0 -> :ok
    end
  end

  @doc "Returns whether the thread has not ended yet."
  @spec alive?(id()) :: boolean()
  def alive?(id), do: Route.to_thread(id, &{:alive?, &1}) == true

  @doc "Returns the id of the thread whose callback runs in the calling process, or `nil` if there is none."
  @spec current() :: id() | nil
  def current, do: Runner.current()

  @doc "Returns the number of threads of a receptor, or 0 if there is no receptor."
  @spec count(receptor()) :: non_neg_integer()
  def count(receptor), do: stats(receptor).alive

  @doc """
  Returns the counters of all workers together. All are 0 if there is no receptor.

  `alive`; `spawned`, `ended`, `crashed`, `cancelled` since the workers started; `waiting` requests that have not begun to run, `parked`
  spawners; `ready` callbacks; `runners` (processes); `chunks` of 256 slots and `rows` in ETS; `inboxes` that hold messages, `dropped`
  messages; `watchers` (monitors and spawners who want replies); `workers`.
  """
  @spec stats(receptor()) :: %{atom() => non_neg_integer()}
  def stats(receptor) do
    all =
      for worker <- Route.all_workers(receptor),
          {:ok, stats} <- [Route.ask(worker, :stats)],
          do: stats

    Enum.reduce(all, Map.put(@no_figures, :workers, length(all)), &add_figures/2)
  end

  defp add_figures(one, other), do: Map.merge(one, other, fn _, a, b -> a + b end)

  @doc """
  Stops a receptor, its workers and its threads. No callback runs after it has returned.

  Monitors receive `{:worker_down, :shutdown}`. Exits with `:noproc` if there is no receptor, as
  `GenServer.stop/1` does.
  """
  @spec stop(receptor()) :: :ok
  def stop(receptor), do: GenServer.stop(receptor)

  defp delay(options) do
    case Keyword.pop(options, :after, 0) do
      {ms, []} when is_delay(ms) ->
        ms

      {ms, []} ->
        raise ArgumentError, "after: needs milliseconds or :infinity, got: #{inspect(ms)}"

      {_, others} ->
        raise ArgumentError, "unknown options, :after is the only one: #{inspect(others)}"
    end
  end

  @doc false
  @spec child_spec([Receptor.option()]) :: Supervisor.child_spec()
  defdelegate child_spec(options), to: Receptor
end
