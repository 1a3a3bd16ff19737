defmodule CallbackThread.Options do
  @moduledoc false
  # Checks a receptor's options. With a limit of zero, no thread would ever run, so it is an
  # error.

  @counts [:workers, :max_waiting, :max_inbox, :max_runners]

  @doc """
  Returns the options, completed with defaults. Raises `ArgumentError` if an option is unknown or
  invalid.
  """
  @spec read!(keyword()) :: keyword()
  def read!(options) do
    unless Keyword.keyword?(options),
      do: raise(ArgumentError, "options need to be a keyword list, got: #{inspect(options)}")

    Enum.each(options, &check/1)
    workers = Keyword.get_lazy(options, :workers, &System.schedulers_online/0)
    max_runners = max(1, div(:erlang.system_info(:process_limit), 2 * workers))

    Keyword.merge(
      [workers: workers, max_waiting: 10_000, max_inbox: 1_000, max_runners: max_runners],
      options
    )
  end

  defp check({name, value}) when name in @counts do
    unless is_integer(value) and value >= 1 do
      raise ArgumentError, "#{name}: needs an integer of at least 1, got: #{inspect(value)}"
    end
  end

  defp check({:name, _}), do: :ok

  defp check({name, _}) do
    raise ArgumentError,
          "unknown option #{inspect(name)}: there are #{Enum.map_join(@counts, ", ", &inspect/1)} and :name"
  end
end
