defmodule CallbackThread.Parked do
  @moduledoc """
  A queue of spawners that wait until a worker has room for their requests, first come, first
  served.

  After a timeout, a spawner is withdrawn by its reference, which frees its entry. All operations
  take amortised constant time.
  """

  defstruct first: 0, next: 0, entries: %{}, numbers: %{}

  @type t :: %__MODULE__{}
  @type reply_to :: {pid(), reference()} | nil
  @type entry :: {CallbackThread.callback(), reply_to(), GenServer.from()}

  @doc "Returns the number of waiting spawners."
  @spec count(t()) :: non_neg_integer()
  def count(parked), do: map_size(parked.entries)

  @doc "Appends a spawner."
  @spec push(t(), entry()) :: t()
  def push(%{next: next} = parked, {_, reply_to, _} = entry) do
    numbers =
      case reply_to do
        {_, ref} -> Map.put(parked.numbers, ref, next)
        nil -> parked.numbers
      end

    entries = Map.put(parked.entries, next, entry)
    %{parked | next: next + 1, entries: entries, numbers: numbers}
  end

  @doc """
  Removes and returns the first spawner, or returns `:empty`.

      iex> alias CallbackThread.Parked
      iex> [one, two] = for _ <- 1..2, do: make_ref()
      iex> parked = Enum.reduce([one, two], %Parked{}, &Parked.push(&2, {fn -> 1 end, {self(), &1}, nil}))
      iex> {{_, _, nil}, parked} = Parked.withdraw(parked, one)
      iex> {{_, {_, ^two}, _}, parked} = Parked.pop(parked)
      iex> {Parked.pop(parked), Parked.withdraw(parked, two)}
      {:empty, :unknown}
  """
  @spec pop(t()) :: {entry(), t()} | :empty
  def pop(%{entries: entries}) when entries == %{}, do: :empty

  def pop(%{first: first} = parked) do
    parked = %{parked | first: first + 1}

    case Map.pop(parked.entries, first) do
      {nil, _} -> pop(parked)
      {entry, entries} -> {entry, forget(%{parked | entries: entries}, entry)}
    end
  end

  @doc """
  Removes and returns the spawner with the given reference, or returns `:unknown` if it is not in
  the queue.
  """
  @spec withdraw(t(), reference()) :: {entry(), t()} | :unknown
  def withdraw(parked, ref) do
    case parked.numbers do
      %{^ref => number} ->
        {entry, entries} = Map.pop!(parked.entries, number)
        {entry, forget(%{parked | entries: entries}, entry)}

      _ ->
        :unknown
    end
  end

  defp forget(parked, {_, nil, _}), do: parked

  defp forget(parked, {_, {_, ref}, _}),
    do: %{parked | numbers: Map.delete(parked.numbers, ref)}
end
