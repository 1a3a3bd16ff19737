defmodule CallbackThread.Outcome do
  @moduledoc """
  Parses the return value of a callback, which determines how the thread continues.

  | return value | the thread |
  |---|---|
  | `{:after, ms, fun}` | runs `fun` after at least `ms` milliseconds |
  | `{:receive, handler}` | runs `handler` with its next message |
  | `{:receive, handler, ms, on_timeout}` | the same, but runs `on_timeout` if no message arrives within `ms` |
  | `{:after, ms, code, integer}` | runs the registered function `code` with `integer` after `ms`, kept in 24 bytes |
  | `{:receive, code, integer, ms}` | the same, on its next message, or after `ms` without one |
  | `{:after, ms, integer}`, `{:receive, integer}`, `{:receive, integer, ms}` | in a registered function: the same with its own code |
  | `{:reply, value}` | sends `value` to its spawner and ends |
  | `{:reply, value, next}` | sends `value` to its spawner and continues as `next`, any return value |
  | anything else | ends |

  `ms` is a number of milliseconds from 0 to 10^12 (31 years), counted from the callback's return.
  For a wait for a message, it may also be `:infinity`. `integer` is a signed 64-bit integer.
  `fun` and `on_timeout` take the thread's id or nothing; `handler` takes the message, or the
  message and the id.

  Any other tuple that begins with `:after`, `:receive` or `:reply` is an error: the thread ends
  with the reason `{:bad_return, value}`.
  """

  alias CallbackThread.{Clock, Functions}

  # Ticks must stay far below 2^58, which marks a wait without a timer.
  @max_ms 1_000_000_000_000

  @type next ::
          {:after, Clock.tick(), function()}
          | {:receive, function(), Clock.tick() | :never, function() | nil}
          | {:registered, CallbackThread.code(), integer(), Clock.tick() | :never,
             receiving :: boolean()}
          | {:ended, reason :: term()}
  @typedoc "The replies, oldest first, and how the thread continues."
  @type t :: {[term()], next()}

  defguardp is_wait(ms) when is_integer(ms) and ms >= 0 and ms <= @max_ms
  defguardp is_timeout(ms) when ms == :infinity or is_wait(ms)
  defguardp is_start(fun) when is_function(fun, 0) or is_function(fun, 1)
  defguardp is_handler(fun) when is_function(fun, 1) or is_function(fun, 2)

  defguardp is_word(int)
            when is_integer(int) and int >= -0x8000000000000000 and int <= 0x7FFFFFFFFFFFFFFF

  @doc "Returns whether `fun` can be the first callback of a thread, or run after a wait."
  defguard is_callback(fun) when is_function(fun, 0) or is_function(fun, 1)
  @doc "Returns whether `int` can be the argument of a registered function."
  defguard is_argument(int) when is_word(int)
  @doc "Returns whether `ms` can be the duration of a wait: an integer from 0 to 10^12."
  defguard is_milliseconds(ms) when is_wait(ms)

  @doc """
  Parses a return value. Waits count from now. `context` has the `:base` of the clock and the table
  of `:functions`. `code` is the code of the registered function that returned the value, or `nil`
  for a closure.

      iex> context = %{base: CallbackThread.Clock.base(), functions: nil}
      iex> CallbackThread.Outcome.read({:reply, 1, {:reply, 2}}, context, nil)
      {[1, 2], {:ended, :normal}}
      iex> CallbackThread.Outcome.read({:after, -1, :soon}, context, nil)
      {[], {:ended, {:bad_return, {:after, -1, :soon}}}}
  """
  @spec read(term(), map(), CallbackThread.code() | nil) :: t()
  def read(value, context, code), do: read(value, context, code, [])

  defp read({:reply, value}, _context, _code, replies),
    do: {Enum.reverse([value | replies]), {:ended, :normal}}

  defp read({:reply, value, next}, context, code, replies),
    do: read(next, context, code, [value | replies])

  defp read(value, context, code, replies),
    do: {Enum.reverse(replies), next(value, context, code)}

  defp next({:after, ms, fun}, context, _) when is_wait(ms) and is_start(fun),
    do: {:after, due(context, ms), fun}

  defp next({:receive, handler}, _, _) when is_handler(handler),
    do: {:receive, handler, :never, nil}

  defp next({:receive, handler, ms, on_timeout}, context, _)
       when is_handler(handler) and is_timeout(ms) and is_start(on_timeout) do
    {:receive, handler, due(context, ms), on_timeout}
  end

  defp next({:after, ms, int}, context, code) when is_wait(ms) and is_word(int) and code != nil do
    {:registered, code, int, due(context, ms), false}
  end

  defp next({:receive, int}, _, code) when is_word(int) and code != nil,
    do: {:registered, code, int, :never, true}

  defp next({:receive, int, ms}, context, code)
       when is_word(int) and is_timeout(ms) and code != nil do
    {:registered, code, int, due(context, ms), true}
  end

  defp next({:after, ms, code, int} = value, context, _) when is_wait(ms) and is_word(int) do
    known(value, context, code, {:registered, code, int, due(context, ms), false})
  end

  defp next({:receive, code, int, ms} = value, context, _) when is_word(int) and is_timeout(ms) do
    known(value, context, code, {:registered, code, int, due(context, ms), true})
  end

  defp next(value, _, _) when is_tuple(value) and elem(value, 0) in [:after, :receive, :reply],
    do: bad(value)

  defp next(_, _, _), do: {:ended, :normal}

  defp known(value, context, code, next) do
    if Functions.member?(context.functions, code), do: next, else: bad(value)
  end

  defp bad(value), do: {:ended, {:bad_return, value}}
  defp due(_context, :infinity), do: :never
  defp due(context, ms), do: Clock.due(context.base, ms)
end
