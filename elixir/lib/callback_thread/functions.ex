defmodule CallbackThread.Functions do
  @moduledoc """
  A table of the registered functions of one receptor, which its runners read.

  A code is a small integer, so that it fits into a slot's kind. Codes are never reused.
  Registering a name again replaces its function and keeps its code.
  """

  alias CallbackThread.Slots

  # Kinds 2 and 3 are closures. Each code has a kind for waits with a timer only, and one for
  # messages.
  @first_kind 4
  @max_code div(Slots.max_kind() - @first_kind - 1, 2)

  @doc """
  Creates a table. It belongs to the calling process, and no other process may register functions.
  """
  @spec new() :: :ets.tid()
  def new, do: :ets.new(:callback_thread_functions, [:set, :protected, read_concurrency: true])

  @doc """
  Registers `fun` under `name` and returns its code, or an error if all codes are in use. Only the
  process that created the table may call this.
  """
  @spec put(:ets.tid(), term(), function()) ::
          {:ok, CallbackThread.code()} | {:error, :too_many_functions}
  def put(table, name, fun) do
    code = code(table, name)

    if code > @max_code do
      {:error, :too_many_functions}
    else
      :ets.insert(table, [{code, fun}, {{:name, name}, code}])
      {:ok, code}
    end
  end

  # Every function has two rows.
  defp code(table, name) do
    case :ets.lookup(table, {:name, name}) do
      [{_, code}] -> code
      [] -> div(:ets.info(table, :size), 2)
    end
  end

  @doc "Returns whether there is a function with the given code."
  @spec member?(:ets.tid(), term()) :: boolean()
  def member?(table, code), do: is_integer(code) and :ets.member(table, code)

  @doc "Returns the function with the given code, which must exist."
  @spec fetch!(:ets.tid(), CallbackThread.code()) :: function()
  def fetch!(table, code), do: :ets.lookup_element(table, code, 2)

  @doc "Returns the kind of the slot in which a unit with the given code waits."
  @spec kind(CallbackThread.code(), receiving :: boolean()) :: Slots.kind()
  def kind(code, receiving), do: @first_kind + 2 * code + if(receiving, do: 1, else: 0)

  @doc """
  Returns the code that a kind of slot denotes, and whether the unit is waiting for a message.
  """
  @spec from_kind(Slots.kind()) :: {CallbackThread.code(), receiving :: boolean()}
  def from_kind(kind), do: {div(kind - @first_kind, 2), rem(kind - @first_kind, 2) == 1}
end
