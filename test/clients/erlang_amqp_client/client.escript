%% The client steps with Erlang's amqp_client, which ships with the broker (test/clients/README.md, "The tests"). Arguments: host:port, a prefix, a queue type.
-mode(compile).
-include_lib("amqp_client/include/amqp_client.hrl").

-define(SMALL, <<"hello bellhop">>).
-define(WAIT, 20000).

main([Address, Prefix, QueueType]) ->
    logger:set_primary_config(level, none),
    io:setopts([{encoding, unicode}]),
    Queue = list_to_binary(Prefix ++ ".q"),
    Exchange = list_to_binary(Prefix ++ ".events"),
    put(queue, Queue),
    Large = large(),

    Connection = connect(Address),
    [{channel_max, ChannelMax}, {frame_max, FrameMax}] = amqp_connection:info(Connection, [channel_max, frame_max]),
    line("connect: open"),
    line("limits: channel_max=~b frame_max=~b", [ChannelMax, FrameMax]),

    {ok, Ch} = amqp_connection:open_channel(Connection),
    #'exchange.declare_ok'{} = amqp_channel:call(Ch, #'exchange.declare'{exchange = Exchange, type = <<"topic">>, durable = true}),
    #'queue.declare_ok'{queue = Name, message_count = Messages, consumer_count = Consumers} =
        amqp_channel:call(Ch, #'queue.declare'{queue = Queue, durable = true,
                                               arguments = [{<<"x-queue-type">>, longstr, list_to_binary(QueueType)}]}),
    #'queue.bind_ok'{} = amqp_channel:call(Ch, #'queue.bind'{queue = Queue, exchange = Exchange, routing_key = <<"order.#">>}),
    confirm(Ch),
    line("declare: ~s messages=~b consumers=~b", [Name, Messages, Consumers]),

    [begin
         Properties = (properties("m-" ++ Word))#'P_basic'{correlation_id = <<"c">>, type = <<"order">>},
         Outcome = publish(Ch, Exchange, list_to_binary("order." ++ Word), Properties, Body),
         line("publish: ~s ~s ~s", [Word, seen(Body), Outcome])
     end || {Word, Body} <- [{"small", ?SMALL}, {"binary", binary()}, {"large", Large}]],

    #'basic.qos_ok'{} = amqp_channel:call(Ch, #'basic.qos'{prefetch_count = 2}),
    consume(Ch, fun(#'basic.deliver'{delivery_tag = Tag, redelivered = Again, routing_key = Key}, #amqp_msg{props = P, payload = Body}) ->
                    line("consume: key=~s tag=~b redelivered=~s ~s ~s", [Key, Tag, yes(Again), seen(Body), show(P)]),
                    ack(Ch, Tag),
                    Key =:= <<"order.large">>
                end),

    publish(Ch, <<>>, Queue, #'P_basic'{}, ?SMALL),
    {_, #amqp_msg{props = Bare}} = get(Ch, true),
    line("bare: delivery_mode=~s message_id=~s", [text(Bare#'P_basic'.delivery_mode), text(Bare#'P_basic'.message_id)]),

    publish(Ch, Exchange, <<"order.headers">>, (properties("m-headers"))#'P_basic'{headers = headers()}, ?SMALL),
    {_, #amqp_msg{props = #'P_basic'{headers = Headers}}} = get(Ch, true),
    [line("headers: ~s=~s ~w", [Header, Type, Value]) || {Header, Type, Value} <- lists:sort(Headers)],

    returned(Connection, Exchange, Large),

    publish(Ch, <<>>, Queue, properties("m-nack"), part(Large, 80000)),
    consume(Ch, fun(#'basic.deliver'{delivery_tag = Tag, redelivered = Again}, #amqp_msg{payload = Body}) ->
                    line("nack: redelivered=~s ~s", [yes(Again), seen(Body)]),
                    case Again of
                        true -> ack(Ch, Tag);
                        false -> amqp_channel:cast(Ch, #'basic.nack'{delivery_tag = Tag, requeue = true})
                    end,
                    Again
                end),

    publish(Ch, <<>>, Queue, properties("m-get"), part(Large, 90000)),
    {#'basic.get_ok'{delivery_tag = Got, redelivered = GotAgain, message_count = Left}, #amqp_msg{props = P, payload = GotBody}} = get(Ch, false),
    line("get: redelivered=~s left=~b ~s ~s", [yes(GotAgain), Left, seen(GotBody), show(P)]),
    ack(Ch, Got),
    line("get: empty=~s", [empty(Ch)]),

    transaction(Connection, Ch, Large),
    rpc(Connection, Ch),

    #'queue.declare_ok'{queue = Exclusive} = amqp_channel:call(Ch, #'queue.declare'{exclusive = true}),
    Other = connect(Address),
    refused(Other, Exclusive, "EXCLUSIVE"),
    ok = amqp_connection:close(Other),
    Missing = list_to_binary(Prefix ++ ".missing"),
    refused(Connection, Missing, Missing),

    publish(Ch, <<>>, Queue, properties("m-kept"), part(Large, 110000)),
    restart(Address, Connection, Large).

%% The client does not reconnect by itself: a program monitors the connection.
restart(Address, Connection, Large) ->
    Queue = get(queue),
    Monitor = monitor(process, Connection),
    line("ready for restart"),
    io:get_line(""),
    receive
        {'DOWN', Monitor, process, _, {shutdown, {server_initiated_close, Code, _}}} -> line("lost: ~b", [Code]);
        {'DOWN', Monitor, process, _, _} -> line("lost: -")
    after ?WAIT -> exit(not_lost)
    end,
    io:get_line(""),
    Again = connect(Address),
    {ok, Ch} = amqp_connection:open_channel(Again),
    confirm(Ch),
    take(Ch, "restart: kept"),
    publish(Ch, <<>>, Queue, properties("m-after"), part(Large, 120000)),
    consume(Ch, fun(#'basic.deliver'{delivery_tag = Tag}, #amqp_msg{props = #'P_basic'{message_id = Id}, payload = Body}) ->
                    line("restart: consumed ~s ~s", [Id, seen(Body)]),
                    ack(Ch, Tag),
                    true
                end),
    #'queue.delete_ok'{} = amqp_channel:call(Ch, #'queue.delete'{queue = Queue}),
    ok = amqp_connection:close(Again),
    line("close: clean").

transaction(Connection, Ch, Large) ->
    {ok, Tx} = amqp_connection:open_channel(Connection),
    #'tx.select_ok'{} = amqp_channel:call(Tx, #'tx.select'{}),
    Send = fun(Id, Body) ->
               amqp_channel:cast(Tx, #'basic.publish'{routing_key = get(queue)}, #amqp_msg{props = properties(Id), payload = Body})
           end,
    Send("m-tx-1", ?SMALL),
    Send("m-tx-2", part(Large, 100000)),
    line("transaction: before the commit empty=~s", [empty(Ch)]),
    #'tx.commit_ok'{} = amqp_channel:call(Tx, #'tx.commit'{}),
    take(Ch, "transaction: committed"),
    take(Ch, "transaction: committed"),
    Send("m-tx-3", ?SMALL),
    Send("m-tx-4", part(Large, 100000)),
    #'tx.rollback_ok'{} = amqp_channel:call(Tx, #'tx.rollback'{}),
    line("transaction: rolled back empty=~s", [empty(Ch)]),
    ok = amqp_channel:close(Tx).

rpc(Connection, Ch) ->
    {ok, Asking} = amqp_connection:open_channel(Connection),
    #'basic.consume_ok'{} = amqp_channel:subscribe(Asking, #'basic.consume'{queue = <<"amq.rabbitmq.reply-to">>, no_ack = true}, self()),
    receive #'basic.consume_ok'{} -> ok end,
    Asked = (properties("m-rpc"))#'P_basic'{reply_to = <<"amq.rabbitmq.reply-to">>, correlation_id = <<"rpc-1">>},
    amqp_channel:cast(Asking, #'basic.publish'{routing_key = get(queue)}, #amqp_msg{props = Asked, payload = <<"question">>}),
    {#'basic.get_ok'{delivery_tag = Tag}, #amqp_msg{props = P, payload = Question}} = get_when_there(Ch),
    publish(Ch, <<>>, P#'P_basic'.reply_to, #'P_basic'{correlation_id = P#'P_basic'.correlation_id}, <<"answer to ", Question/binary>>),
    ack(Ch, Tag),
    receive
        {#'basic.deliver'{}, #amqp_msg{props = #'P_basic'{correlation_id = Id}, payload = Answer}} -> line("rpc: correlation_id=~s ~s", [Id, Answer])
    after ?WAIT -> exit(no_reply)
    end,
    ok = amqp_channel:close(Asking).

returned(Connection, Exchange, Large) ->
    {ok, Ch} = amqp_connection:open_channel(Connection),
    confirm(Ch),
    amqp_channel:register_return_handler(Ch, self()),
    amqp_channel:cast(Ch, #'basic.publish'{exchange = Exchange, routing_key = <<"nobody.wants.this">>, mandatory = true},
                      #amqp_msg{props = properties("m-return"), payload = part(Large, 70000)}),
    receive
        {#'basic.return'{reply_code = Code, reply_text = Text, exchange = From, routing_key = Key}, #amqp_msg{props = P, payload = Body}} ->
            line("return: code=~b text=~s exchange=~s key=~s ~s ~s then ~s", [Code, Text, From, Key, seen(Body), show(P), outcome()])
    after ?WAIT -> exit(no_return)
    end,
    ok = amqp_channel:close(Ch).

refused(Connection, Name, ShownAs) ->
    {ok, Ch} = amqp_connection:open_channel(Connection),
    try amqp_channel:call(Ch, #'queue.declare'{queue = Name, passive = true})
    catch exit:{{shutdown, {server_initiated_close, Code, Text}}, _} ->
        line("refused: ~b ~s", [Code, string:replace(Text, Name, ShownAs)])
    end.

connect(Address) ->
    [Host, Port] = string:split(Address, ":"),
    {ok, Connection} = amqp_connection:start(#amqp_params_network{host = Host, port = list_to_integer(Port)}),
    Connection.

confirm(Ch) ->
    #'confirm.select_ok'{} = amqp_channel:call(Ch, #'confirm.select'{}),
    ok = amqp_channel:register_confirm_handler(Ch, self()).

%% A publish in confirm mode, and its outcome.
publish(Ch, Exchange, Key, Properties, Body) ->
    ok = amqp_channel:cast(Ch, #'basic.publish'{exchange = Exchange, routing_key = Key}, #amqp_msg{props = Properties, payload = Body}),
    outcome().

outcome() ->
    receive
        #'basic.ack'{} -> "ack";
        #'basic.nack'{} -> "nack"
    after ?WAIT -> exit(no_confirm)
    end.

%% Hands each delivery over, until that is enough.
consume(Ch, Enough) ->
    #'basic.consume_ok'{consumer_tag = Tag} = amqp_channel:subscribe(Ch, #'basic.consume'{queue = get(queue)}, self()),
    receive #'basic.consume_ok'{} -> ok end,
    until(Enough),
    #'basic.cancel_ok'{} = amqp_channel:call(Ch, #'basic.cancel'{consumer_tag = Tag}),
    receive #'basic.cancel_ok'{} -> ok end.

until(Enough) ->
    receive
        {#'basic.deliver'{} = Deliver, Message} -> Enough(Deliver, Message) orelse until(Enough)
    after ?WAIT -> exit(no_delivery)
    end.

get(Ch, NoAck) ->
    amqp_channel:call(Ch, #'basic.get'{queue = get(queue), no_ack = NoAck}).

%% The question was published without a confirm: it may still be on its way.
get_when_there(Ch) ->
    case get(Ch, false) of
        #'basic.get_empty'{} -> get_when_there(Ch);
        Found -> Found
    end.

empty(Ch) ->
    yes(is_record(get(Ch, false), 'basic.get_empty')).

take(Ch, What) ->
    {_, #amqp_msg{props = #'P_basic'{message_id = Id}, payload = Body}} = get(Ch, true),
    line("~s ~s ~s", [What, Id, seen(Body)]).

ack(Ch, Tag) ->
    amqp_channel:cast(Ch, #'basic.ack'{delivery_tag = Tag}).

properties(Id) ->
    #'P_basic'{content_type = <<"text/plain">>, delivery_mode = 2, message_id = list_to_binary(Id)}.

headers() ->
    [{<<"string">>, longstr, <<"grüß"/utf8>>}, {<<"bytes">>, binary, <<0, 255>>}, {<<"true">>, bool, true}, {<<"byte">>, byte, -7},
     {<<"ubyte">>, unsignedbyte, 200}, {<<"short">>, short, -300}, {<<"ushort">>, unsignedshort, 60000}, {<<"int">>, signedint, -70000},
     {<<"uint">>, unsignedint, 4000000000}, {<<"long">>, long, 1 bsl 40}, {<<"float">>, float, 0.5}, {<<"double">>, double, 2.25},
     {<<"decimal">>, decimal, {2, 314}}, {<<"time">>, timestamp, 1715947200}, {<<"table">>, table, [{<<"a">>, table, [{<<"b">>, longstr, <<"c">>}]}]},
     {<<"array">>, array, [{signedint, 1}, {longstr, <<"two">>}, {table, [{<<"three">>, signedint, 3}]}]}, {<<"void">>, void, undefined}].

%% Looks like a claim check, and is none.
binary() ->
    list_to_binary([16#ac, 1, 1 | lists:seq(0, 255)]).

%% 5 MiB.
large() ->
    << <<(list_to_binary(string:pad(integer_to_list(I), 8, leading, $0)))/binary>> || I <- lists:seq(0, 655359) >>.

part(Body, Size) ->
    binary:part(Body, 0, Size).

seen(Body) ->
    io_lib:format("bytes=~b md5=~s", [byte_size(Body), string:lowercase(binary:encode_hex(erlang:md5(Body)))]).

show(#'P_basic'{content_type = Type, delivery_mode = Mode, message_id = Id, correlation_id = Correlation, type = Kind}) ->
    io_lib:format("content_type=~s delivery_mode=~s message_id=~s correlation_id=~s type=~s", [text(V) || V <- [Type, Mode, Id, Correlation, Kind]]).

text(undefined) -> "-";
text(Number) when is_integer(Number) -> integer_to_list(Number);
text(Text) -> Text.

yes(true) -> "yes";
yes(false) -> "no".

line(Text) ->
    line(Text, []).
line(Format, Values) ->
    io:format(Format ++ "~n", Values).
