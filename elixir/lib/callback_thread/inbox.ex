defmodule CallbackThread.Inbox do
  @moduledoc """
  Queues of messages that arrived while their thread was not waiting for one, oldest first.

  Only threads with such messages have an entry.
  """

  @type t :: %{optional(CallbackThread.Slots.key()) => {pos_integer(), :queue.queue()}}

  @doc "Appends a message, or returns `:full` if the thread already has `limit` messages or more."
  @spec put(t(), CallbackThread.Slots.key(), term(), pos_integer()) :: {:ok, t()} | :full
  def put(inboxes, key, message, limit) do
    case inboxes do
      %{^key => {count, _}} when count >= limit ->
        :full

      %{^key => {count, queue}} ->
        {:ok, %{inboxes | key => {count + 1, :queue.in(message, queue)}}}

      _ ->
        {:ok, Map.put(inboxes, key, {1, :queue.in(message, :queue.new())})}
    end
  end

  @doc """
  Removes and returns the oldest message of a thread, or returns `:empty`.

      iex> {:ok, inboxes} = CallbackThread.Inbox.put(%{}, 7, :hello, 10)
      iex> CallbackThread.Inbox.take(inboxes, 7)
      {:ok, :hello, %{}}
      iex> CallbackThread.Inbox.take(inboxes, 8)
      :empty
  """
  @spec take(t(), CallbackThread.Slots.key()) :: {:ok, term(), t()} | :empty
  def take(inboxes, key) do
    case inboxes do
      %{^key => {1, queue}} ->
        {:ok, :queue.get(queue), Map.delete(inboxes, key)}

      %{^key => {count, queue}} ->
        {:ok, :queue.get(queue), %{inboxes | key => {count - 1, :queue.drop(queue)}}}

      _ ->
        :empty
    end
  end
end
