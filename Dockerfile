# bellhop beside a service: an unprivileged user, no shell needed at run time, works with a read-only root file system.
#
#   docker build -t bellhop .
#   docker run --read-only -v ./bellhop.yaml:/etc/bellhop/bellhop.yaml:ro -v bellhop-run:/run/bellhop -v claims:/var/lib/bellhop/claims bellhop
#
# With an S3 store a folder for scratch files has to be writable too: --tmpfs /tmp, or a volume and -e TMPDIR.
# The service's container mounts the same volume for the socket's folder, /run/bellhop. Its user must be in the group 10001 (--group-add 10001),
# or the configuration must say `mode: "0666"` for the socket.
FROM debian:12 AS build
RUN apt-get update && apt-get install -y --no-install-recommends g++ cmake ninja-build pkg-config librabbitmq-dev libuv1-dev libspdlog-dev \
      libyaml-cpp-dev libxxhash-dev nlohmann-json3-dev libcli11-dev libcurl4-openssl-dev libssl-dev \
      libmicrohttpd-dev prometheus-cpp-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY CMakeLists.txt CMakePresets.json ./
COPY proto proto
COPY config config
COPY daemon daemon
RUN cmake --preset release -DBELLHOP_TESTS=OFF && cmake --build --preset release -j "$(nproc)" && \
      strip build/release/daemon/bellhop

FROM debian:12-slim
RUN apt-get update && apt-get install -y --no-install-recommends librabbitmq4 libuv1 libspdlog1.10 libyaml-cpp0.7 libxxhash0 \
      libcurl4 libssl3 libmicrohttpd12 libprometheus-cpp-core1.0 ca-certificates && \
      rm -rf /var/lib/apt/lists/* && \
      groupadd --system --gid 10001 bellhop && useradd --system --uid 10001 --gid bellhop --no-create-home --shell /usr/sbin/nologin bellhop && \
      install -d -o bellhop -g bellhop -m 0770 /run/bellhop /var/lib/bellhop /var/lib/bellhop/claims
COPY --from=build /src/build/release/daemon/bellhop /usr/local/bin/bellhop
COPY config/bellhop.yaml /usr/share/doc/bellhop/bellhop.yaml
USER 10001:10001
ENTRYPOINT ["/usr/local/bin/bellhop"]
CMD ["run", "--config", "/etc/bellhop/bellhop.yaml"]
