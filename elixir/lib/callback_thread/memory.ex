defmodule CallbackThread.Memory do
  @moduledoc """
  Measures the memory of the BEAM's operating system process, and formats the results.
  """

  @doc """
  Returns the proportional set size of the BEAM in bytes, from `/proc/self/smaps_rollup`, or `nil`
  if that file cannot be read.

  Shared pages count proportionally. Free memory that the BEAM retains counts in full.
  """
  @spec pss() :: non_neg_integer() | nil
  def pss do
    with {:ok, text} <- File.read("/proc/self/smaps_rollup"),
         [_, kib] <- Regex.run(~r/^Pss:\s+(\d+) kB/m, text) do
      String.to_integer(kib) * 1024
    else
      _ -> nil
    end
  end

  @doc """
  Returns the slope of the least-squares line through the points. There must be points with
  different x values.

      iex> CallbackThread.Memory.slope([{0, 5}, {10, 25}, {20, 45}])
      2.0
  """
  @spec slope([{number(), number()}]) :: float()
  def slope(points) do
    count = length(points)
    mean_x = Enum.sum(Enum.map(points, &elem(&1, 0))) / count
    mean_y = Enum.sum(Enum.map(points, &elem(&1, 1))) / count
    products = Enum.sum(for {x, y} <- points, do: (x - mean_x) * (y - mean_y))
    products / Enum.sum(for {x, _} <- points, do: (x - mean_x) * (x - mean_x))
  end

  @doc """
  Formats an integer with thousands separators.

      iex> CallbackThread.Memory.digits(-1_234_567)
      "-1,234,567"
  """
  @spec digits(integer()) :: String.t()
  def digits(int) when int < 0, do: "-" <> digits(-int)

  def digits(int) do
    int
    |> Integer.digits(1_000)
    |> Enum.map_join(",", &String.pad_leading("#{&1}", 3, "0"))
    |> strip()
  end

  defp strip("00" <> rest), do: rest
  defp strip("0" <> rest), do: rest
  defp strip(digits), do: digits
end
