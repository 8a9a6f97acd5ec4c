# bellhop beside a service: an unprivileged user, no shell, works with a read-only root file system.
#
#   deploy/image                                   builds it with docker or buildah, whichever is there
#   DOCKER_BUILDKIT=1 docker build -t bellhop .    the same without its labels for version and commit
#   docker run --read-only --tmpfs /tmp -v ./bellhop.yaml:/etc/bellhop/bellhop.yaml:ro \
#     -v bellhop-run:/run/bellhop -v bellhop-claims:/var/lib/bellhop/claims bellhop
#
# The service's container mounts the volume with the socket too, and is in the group 10001 (--group-add 10001).
#
# The image begins from nothing and has the program, the libraries that it needs, and no others: 30 MB, where the same libraries as packages
# put 105 MB on top of Debian's small image. Nothing in it can be run but bellhop, and nothing else needs updates. Scanners find what is in
# it: the packages' names and versions are in /var/lib/dpkg/status.d, their licences in /usr/share/doc.

# Debian 12: an image of that name, or what deploy/image --base gives.
ARG BASE=debian:12
FROM ${BASE} AS build
RUN apt-get update && apt-get install -y --no-install-recommends g++ cmake ninja-build ccache pkg-config librabbitmq-dev libuv1-dev \
      libspdlog-dev libyaml-cpp-dev libxxhash-dev nlohmann-json3-dev libcli11-dev libcurl4-openssl-dev libssl-dev libmicrohttpd-dev \
      prometheus-cpp-dev ca-certificates && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY CMakeLists.txt CMakePresets.json ./
COPY proto proto
COPY config config
COPY daemon daemon
COPY deploy/CMakeLists.txt deploy/
ARG BELLHOP_COMMIT=
# The cache makes a second build quick. (It, and the owners of folders that are copied below, need BuildKit or buildah.)
RUN --mount=type=cache,target=/root/.cache/ccache \
    export CCACHE_DIR=/root/.cache/ccache CCACHE_COMPILERCHECK=content CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache && \
    cmake --preset release -DBELLHOP_TESTS=OFF -DBELLHOP_COMMIT="$BELLHOP_COMMIT" && \
    cmake --build --preset release --target bellhop -j "$(nproc)" && \
    strip -o /usr/bin/bellhop build/release/daemon/bellhop
COPY deploy/image-root.sh deploy/
RUN deploy/image-root.sh /usr/bin/bellhop /image

FROM scratch
COPY --from=build /image/ /
COPY LICENSE config/bellhop.yaml /usr/share/doc/bellhop/
ARG BELLHOP_VERSION=
ARG BELLHOP_COMMIT=
LABEL org.opencontainers.image.title="bellhop" \
      org.opencontainers.image.description="A sidecar for RabbitMQ: claim checks and routing slips between a service and its broker" \
      org.opencontainers.image.version="$BELLHOP_VERSION" \
      org.opencontainers.image.revision="$BELLHOP_COMMIT" \
      org.opencontainers.image.licenses="Apache-2.0"
USER 10001:10001
# The socket of a running bellhop, never the broker. It begins to count when bellhop has had time to start.
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s --retries=3 CMD ["/usr/bin/bellhop", "health"]
ENTRYPOINT ["/usr/bin/bellhop"]
CMD ["run", "--config", "/etc/bellhop/bellhop.yaml"]
