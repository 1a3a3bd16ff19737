%% A probe for the BEAM: creates units of concurrency for contend to measure. README.md describes the protocol.
%%
%%     erlc -o DIR beam.erl
%%     erl +P 1048576 +sbwt none +sbwtdcpu none +sbwtdio none -noshell -pa DIR -run beam main UNIT
%%
%% UNIT is process, hibernated or send_after. A million processes need +P where its default is 262,144 (as in OTP 25).
%% +sbwt and related options keep idle schedulers from spinning. With +hms 12 a process starts with a heap of 12 words
%% instead of 233.
-module(beam).
-export([main/1, process/0, hibernated/0, woken/0, sink/1]).

-define(WAITING, 1).
-define(ENDED, 2).

%% -- the units --

%% Body of a process that waits in receive, where it answers messages until it is woken.
process() ->
    count(?WAITING),
    wait().

wait() ->
    receive
        wake -> count(?ENDED);
        {Driver, Number} -> Driver ! Number, wait()
    end.

%% Body of a process that waits in hibernation: without a stack, and with a heap of minimal size. Each message
%% continues it in woken.
hibernated() ->
    count(?WAITING),
    hibernate().

hibernate() -> erlang:hibernate(?MODULE, woken, []).

woken() ->
    receive
        wake -> count(?ENDED);
        {Driver, Number} -> Driver ! Number, hibernate()
    end.

%% Counts the ends of N timers, which have no code of their own. All of them send to this process, and a timer has
%% ended once its message has arrived.
sink(0) -> ok;
sink(N) -> receive due -> count(?ENDED), sink(N - 1) end.

make(send_after, N, Due) ->
    Sink = spawn(?MODULE, sink, [N]),
    %% The runtime does not report the number of timers, so each one that send_after returns is counted.
    times(N, fun() ->
        true = is_reference(erlang:send_after(Due, Sink, due, [{abs, true}])),
        count(?WAITING)
    end);
make(Process, N, _Due) ->
    times(N, fun() -> spawn(?MODULE, Process, []) end).

wake(send_after, Due, _Others) ->
    timer:sleep(max(0, Due - erlang:monotonic_time(millisecond)));
wake(_Process, _Due, Others) ->
    %% The runtime knows the pids of the units, so the probe keeps no list of them, whose memory would be measured.
    lists:foreach(fun(Unit) -> Unit ! wake end, processes() -- Others).

trips(send_after, _M) ->
    none;
trips(Process, M) ->
    Unit = spawn(?MODULE, Process, []),
    trips_to(Unit, 1),
    Nanoseconds = timed(fun() -> trips_to(Unit, M) end),
    exit(Unit, kill),
    Nanoseconds.

trips_to(_Unit, 0) -> ok;
trips_to(Unit, M) ->
    Unit ! {self(), M},
    receive
        M -> trips_to(Unit, M - 1);
        Answer -> error({wrong_answer, M, Answer})
    end.

%% -- the commands --

main([Name]) ->
    %% The default log handler writes to standard output.
    ok = logger:remove_handler(default),
    ok = logger:add_handler(default, logger_std_h, #{config => #{type => standard_error}}),
    %% Parsing lists of characters would load Unicode tables of 4 MB.
    ok = io:setopts([binary]),
    try
        Unit = unit(Name),
        %% The counters are a persistent term, so that units hold no reference to them.
        persistent_term:put(?MODULE, counters:new(2, [])),
        warm_up(Unit),
        answer("ready OTP ~s", [erlang:system_info(otp_release)]),
        serve(Unit, none)
    of
        ok -> halt(0)
    catch
        _:Reason ->
            io:format(standard_error, "~p~n", [Reason]),
            halt(1)
    end.

unit("process") -> process;
unit("hibernated") -> hibernated;
unit("send_after") -> send_after;
unit(Name) -> error({no_such_unit, Name}).

warm_up(Unit) ->
    {_, Units} = park(Unit, 100, 20),
    end_all(Unit, Units),
    trips(Unit, 100),
    bytes().

serve(Unit, Units) ->
    case io:get_line("") of
        eof -> ok;
        Line -> serve(Unit, command(binary:split(Line, [<<" ">>, <<"\n">>], [global, trim_all]), Unit, Units))
    end.

command([<<"park">>, N, Hold], Unit, none) ->
    {Nanoseconds, Units} = park(Unit, binary_to_integer(N), binary_to_integer(Hold)),
    answer("parked ~b ~b ~b", [counted(?WAITING), Nanoseconds, bytes()]),
    Units;
command([<<"wake">>], Unit, Units) ->
    Early = counted(?ENDED),
    Nanoseconds = end_all(Unit, Units),
    answer("woken ~b ~b ~b", [Early, counted(?ENDED), Nanoseconds]),
    none;
command([<<"rest">>], _Unit, Units) ->
    %% Memory that other schedulers have returned to the one that allocated it is freed with a delay.
    timer:sleep(200),
    answer("rested ~b", [bytes()]),
    Units;
command([<<"trips">>, M], Unit, Units) ->
    case trips(Unit, binary_to_integer(M)) of
        none -> answer("trips none a timer takes no messages", []);
        Nanoseconds -> answer("trips ~s ~b", [M, Nanoseconds])
    end,
    Units.

park(Unit, N, Hold) ->
    Due = erlang:monotonic_time(millisecond) + Hold,
    [counters:put(persistent_term:get(?MODULE), Counter, 0) || Counter <- [?WAITING, ?ENDED]],
    Others = processes(),
    Nanoseconds = timed(fun() -> make(Unit, N, Due), await(?WAITING, N) end),
    {Nanoseconds, {N, Due, Others}}.

end_all(Unit, {N, Due, Others}) ->
    timed(fun() -> wake(Unit, Due, Others), await(?ENDED, N) end).

%% Waits until N units wait or have ended. A unit counts itself shortly before, so the driver also waits until no
%% process but itself is active.
await(Counter, N) ->
    case counted(Counter) =:= N andalso erlang:statistics(total_active_tasks) =:= 1 of
        true -> ok;
        false -> erlang:yield(), await(Counter, N)
    end.

count(Counter) -> counters:add(persistent_term:get(?MODULE), Counter, 1).
counted(Counter) -> counters:get(persistent_term:get(?MODULE), Counter).

bytes() ->
    garbage_collect(),
    erlang:memory(total).

timed(Fun) ->
    Start = erlang:monotonic_time(nanosecond),
    Fun(),
    erlang:monotonic_time(nanosecond) - Start.

times(0, _Fun) -> ok;
times(N, Fun) -> Fun(), times(N - 1, Fun).

answer(Format, Values) -> io:format(Format ++ "~n", Values).
