defmodule CallbackThread.MixProject do
  use Mix.Project

  def project do
    [
      app: :callback_thread,
      version: "0.1.0",
      elixir: "~> 1.14",
      start_permanent: Mix.env() == :prod,
      description:
        "Units of concurrency without a stack: what a callback returns says what it waits for",
      package: [licenses: ["MIT", "Apache-2.0"]],
      deps: []
    ]
  end

  def application do
    [mod: {CallbackThread.Application, []}, extra_applications: [:logger]]
  end
end
