defmodule CallbackThread do
  @moduledoc """
  Callback threads: stackless units of concurrency.

  A callback thread runs as a series of callbacks, each called on an event. A waiting thread has
  neither a stack nor a process, only its next callback. The return value of a callback selects
  the next event; `CallbackThread.Outcome` lists the possible values. For example:

      receptor = CallbackThread.Receptor.new()

      {:ok, id} =
        CallbackThread.spawn(receptor, fn _id ->
          {:after, 1_000, fn ->
            {:receive, fn message -> IO.inspect(message) end}
          end}
        end)

      CallbackThread.send(id, :hello)

  A receptor owns workers, by default one for each scheduler. Each worker holds threads, and runs
  their callbacks in processes of its own. A thread's callbacks run one at a time and in order;
  those of different threads run in any order.

  ## Two kinds of storage

  *Closures* are the general form. A waiting closure takes a slot of 24 bytes and a row in ETS: with
  one captured integer, about 148 bytes in total.

  *Registered functions*, whose state is one 64-bit integer, are the small form. A waiting thread of
  this form takes only its slot of 24 bytes. See `register/2` and `spawn_registered/4`.

  ## What a callback may do

  A callback may do anything that a function may. If it returns promptly, it needs no process of
  its own. If it blocks (sleeps, calls a server), its worker detects this within a few
  milliseconds, and runs the next callbacks in another process. A blocked callback occupies a BEAM
  process; a thread that waits by `{:after, ms, fun}` does not.

  Callbacks share processes, so links, monitors, registered names and the process dictionary do
  not last from one callback to the next, and messages to `self()` are lost when the callback
  returns. Use `send/2` with a thread's id. A message to `self()` that arrives later, such as one
  from `Process.send_after/3`, may reach a callback of another thread.

  A crash ends only the thread whose callback crashed. It is logged, and its monitors are notified.

  A callback that waits in `spawn/2` or `call/3` for room in its own receptor occupies a process.
  If `:max_runners` callbacks of a worker wait in this way, they deadlock: use `try_spawn/2` in
  callbacks where that may happen.

  ## Ids

  An id names one thread and is never reused. Once the thread has ended, `send/2`, `cancel/1` and
  `monitor/1` return `{:error, :no_such_thread}` for its id, even if another thread occupies its
  slot. The replacement of a dead worker does not know the ids of its predecessor.

  ## Times and errors

  All times are in milliseconds. Functions that start threads can return these errors, besides
  those in their own documentation:

    * `{:error, :no_such_receptor}`: there is no receptor with this pid or name
    * `{:error, :worker_down}`: the worker died before it answered, or all workers are being
      replaced. The thread may have started, but has ended with its worker

  Like a process, a thread outlives the process that started it.
  """

  import CallbackThread.Outcome, only: [is_callback: 1, is_argument: 1, is_milliseconds: 1]
  import CallbackThread.Route, only: [is_id: 2]
  alias CallbackThread.{Receptor, Route, Runner}

  # Number of threads that one message of `spawn_registered_many` starts. Between the messages,
  # the worker handles other requests.
  @bulk 4_096

  @typedoc "The id of one thread, never reused."
  @opaque id :: {:callback_thread, pid(), non_neg_integer()}
  @typedoc "A receptor: its pid or its registered name."
  @type receptor :: GenServer.server()
  @typedoc "The number of a registered function in its receptor."
  @type code :: non_neg_integer()
  @typedoc "The first callback of a thread, which takes the thread's id or nothing."
  @type callback :: (() -> term()) | (id() -> term())

  # Maximum timeout of a `receive`, in milliseconds.
  @max_timeout_ms 0xFFFFFFFF
  @no_figures Map.new(
                [:alive, :spawned, :ended, :crashed, :cancelled, :waiting, :parked, :ready] ++
                  [:runners, :chunks, :rows, :inboxes, :dropped, :watchers],
                &{&1, 0}
              )

  defguardp is_delay(ms) when ms == :infinity or is_milliseconds(ms)

  defguardp is_await_timeout(ms)
            when ms == :infinity or (is_integer(ms) and ms >= 0 and ms <= @max_timeout_ms)

  @doc """
  Starts a thread. Blocks while every worker has `:max_waiting` requests that have not started.

  A waiting request remains if the calling process dies.

      iex> receptor = CallbackThread.Receptor.new()
      iex> {:ok, id} = CallbackThread.spawn(receptor, fn -> {:receive, fn _ -> :done end} end)
      iex> CallbackThread.alive?(id)
      true
      iex> CallbackThread.stop(receptor)
  """
  @spec spawn(receptor(), callback()) :: {:ok, id()} | {:error, :no_such_receptor | :worker_down}
  def spawn(receptor, fun) when is_callback(fun),
    do: Route.spawn_waiting(receptor, fun, nil, :infinity)

  @doc """
  Starts a thread, or returns `{:error, :full}` if all workers have `:max_waiting` requests that
  have not started.
  """
  @spec try_spawn(receptor(), callback()) ::
          {:ok, id()} | {:error, :full | :no_such_receptor | :worker_down}
  def try_spawn(receptor, fun) when is_callback(fun),
    do: Route.ask_next_worker(receptor, {:spawn, fun, nil, :try})

  @doc """
  Starts a thread that sends its replies to the calling process, as messages
  `{:reply, ref, value}`.

  If the thread ends without a final reply, the caller gets
  `{:DOWN, ref, :callback_thread, id, reason}`, with a reason as in `monitor/1`. Blocks like
  `spawn/2`. `demonitor/2` ends the replies.

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

    with {:ok, id} <- Route.spawn_waiting(receptor, fun, {self(), ref}, :infinity),
         do: {:ok, id, ref}
  end

  @doc """
  Waits for the next reply of a thread started by `spawn_reply/2`, for at most `timeout`
  milliseconds (up to 2^32 - 1, or `:infinity`). Only the process that started the thread gets its
  replies.

  Returns `{:ok, reply}`; `{:error, reason}` if the thread has ended without a final reply, with a
  reason as in `monitor/1`; or `{:error, :timeout}` if nothing arrives in time, which does not end
  the thread. After the final reply or the reason, nothing more arrives.
  """
  @spec await(reference(), timeout()) :: {:ok, term()} | {:error, term()}
  def await(ref, timeout \\ 5_000) when is_reference(ref) and is_await_timeout(timeout) do
    receive do
      {:reply, ^ref, value} -> {:ok, value}
      {:DOWN, ^ref, :callback_thread, _id, reason} -> {:error, reason}
    after
      timeout -> {:error, :timeout}
    end
  end

  @doc """
  Starts a thread and waits for its first reply, for at most `timeout` milliseconds in total (up
  to 2^32 - 1, or `:infinity`).

  Returns `{:error, :timeout}` if the thread was cancelled after this time, or did not start
  because no worker had room for it. Returns `{:error, reason}` if the thread ended without a
  reply, with a reason as in `monitor/1`, or could not be started. A thread that continues after
  its first reply is not cancelled; its later replies are dropped.

      iex> receptor = CallbackThread.Receptor.new()
      iex> CallbackThread.call(receptor, fn -> {:after, 10, fn -> {:reply, 42} end} end)
      {:ok, 42}
      iex> CallbackThread.call(receptor, fn -> :no_reply end)
      {:error, :normal}
      iex> CallbackThread.stop(receptor)
  """
  @spec call(receptor(), callback(), timeout()) :: {:ok, term()} | {:error, term()}
  def call(receptor, fun, timeout \\ 5_000) when is_callback(fun) and is_await_timeout(timeout) do
    deadline = Route.deadline(timeout)
    ref = make_ref()

    with {:ok, id} <- Route.spawn_waiting(receptor, fun, {self(), ref}, deadline) do
      result = await(ref, Route.remaining_ms(deadline))
      if result == {:error, :timeout}, do: cancel(id)
      demonitor(id, ref)
      drop_replies(ref)
      result
    end
  end

  # After `demonitor/2`, no further replies can arrive.
  defp drop_replies(ref) do
    receive do
      {:reply, ^ref, _} -> drop_replies(ref)
    after
      0 -> :ok
    end
  end

  @doc """
  Registers a function with the function itself as its name, and returns its code. The same
  function gets the same code again.

  The function is called as `fun.(integer)` or `fun.(integer, event)`, where the event is `:due`
  or `{:message, message}`. A receptor has at most 4,094 functions; beyond that, the result is
  `{:error, :too_many_functions}`. A code is valid only for the receptor that issued it, not for
  its replacement.
  """
  @spec register(receptor(), (integer() -> term()) | (integer(), event :: term() -> term())) ::
          {:ok, code()} | {:error, :too_many_functions | :no_such_receptor}
  def register(receptor, fun), do: register(receptor, fun, fun)

  @doc """
  Registers a function under a name, like `register/2`. If the name is already registered, the
  function replaces the earlier one and gets its code.
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
  Starts a thread that consists of a registered function and an integer, and takes 24 bytes while
  it waits.

  With `after: ms`, the first call is after `ms` milliseconds (up to 10^12); with
  `after: :infinity`, the thread waits for a message. By default, the first call is immediate. The
  thread does not count as a waiting request, because it already has a slot, so only memory limits
  the number of such threads.

  Returns `{:error, :no_such_function}` if the receptor has no function with the code. Raises if
  the argument is not a 64-bit integer, an option is unknown, or the time is invalid.

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
    Route.ask_next_worker(receptor, {:registered, code, [argument], ms})
  end

  @doc """
  Starts one thread for each argument, like `spawn_registered/4`, and returns their number instead
  of their ids.

  The threads are started in groups of 4,096. An error, or an exception for an invalid argument,
  does not affect earlier groups: their threads continue.
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
      case Route.ask_next_worker(receptor, {:registered, code, bulk, ms}) do
        {:ok, _last} -> {:cont, {:ok, count + length(bulk)}}
        error -> {:halt, error}
      end
    end)
  end

  @doc """
  Sends a message to a thread. After `:ok`, the thread receives the message unless it ends first.

  Messages of one sender arrive in order. Returns `{:error, :full}` if the thread is not waiting
  for a message and already has `:max_inbox` messages.
  """
  @spec send(id(), term()) :: :ok | {:error, :no_such_thread | :full}
  def send(id, message), do: Route.ask_thread(id, &{:send, &1, message})

  @doc """
  Sends a message without waiting for the answer. The message is dropped if the thread has ended
  or its inbox is full.

  There is no back-pressure on a sender that is faster than the worker.
  """
  @spec cast(id(), term()) :: :ok
  def cast({:callback_thread, worker, key}, message) when is_id(worker, key),
    do: GenServer.cast(worker, {:send, key, message})

  @doc """
  Ends a thread with the reason `:cancelled`. If a callback of the thread is running, its process
  is killed.
  """
  @spec cancel(id()) :: :ok | {:error, :no_such_thread}
  def cancel(id), do: Route.ask_thread(id, &{:cancel, &1})

  @doc """
  Monitors a thread: when it ends, the calling process gets
  `{:DOWN, ref, :callback_thread, id, reason}`.

  The reason is `:normal`, `:cancelled`, `{:worker_down, reason}`, `{:bad_return, value}`, or the
  exit reason of a process. A monitor ends with the process that created it.

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
    Route.ask_thread(id, &{:monitor, &1, pid, ref})
  end

  @doc """
  Ends a monitor, or the replies of `spawn_reply/2`, and removes its `:DOWN` message from the
  mailbox if that has arrived. Returns `:ok` even if the thread has ended.
  """
  @spec demonitor(id(), reference()) :: :ok
  def demonitor(id, ref) when is_reference(ref) do
    Route.ask_thread(id, &{:demonitor, &1, ref})

    receive do
      {:DOWN, ^ref, :callback_thread, _, _} -> :ok
    after
      0 -> :ok
    end
  end

  @doc "Returns `false` if the thread has ended or its worker cannot be reached, and `true` otherwise."
  @spec alive?(id()) :: boolean()
  def alive?(id), do: Route.ask_thread(id, &{:alive?, &1}) == true

  @doc "Returns the id of the thread whose callback the calling process is running, or `nil`."
  @spec current() :: id() | nil
  def current, do: Runner.current()

  @doc "Returns the number of threads of a receptor, or 0 if there is no receptor."
  @spec count(receptor()) :: non_neg_integer()
  def count(receptor), do: stats(receptor).alive

  @doc """
  Returns statistics summed over all workers that answer; all are 0 if there is no receptor.

    * `alive`: threads now; `spawned`, `ended`, `crashed`, `cancelled`: threads since the workers
      started
    * `waiting`: requests that were accepted and have not started; `parked`: spawners that wait for
      room
    * `ready`: callbacks in the queues; `runners`: processes that run callbacks; `workers`: workers
      that answered
    * `chunks`: chunks of 256 slots; `rows`: closures in ETS; `inboxes`: non-empty inboxes
    * `dropped`: messages that were refused because an inbox was full
    * `watchers`: monitors, and spawners that want replies
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
  Ends a receptor with its workers and threads. When the function returns, no callback is running.

  Monitors receive the reason `{:worker_down, :shutdown}`. Exits with `:noproc` if there is no
  receptor, like `GenServer.stop/1`.
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
