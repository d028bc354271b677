# tally in a small image. Not built by the project's own checks: read it before you rely on it.
#
#   docker build -t tally .
#   docker run -p 127.0.0.1:8420:8420 -p 127.0.0.1:8421:8421 -v tally-data:/var/lib/tally tally
#
# Every request needs an API key. Make one first:
#   docker exec CONTAINER tally keys create --role admin

FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
# `docker build --build-arg COMMIT=$(git rev-parse HEAD)`: `tally --version --verbose` says it.
ARG COMMIT=unknown
RUN TALLY_BUILD_COMMIT=$COMMIT cargo build --profile dist --locked --package tally

FROM debian:bookworm-slim
RUN useradd --system --uid 8420 --home-dir /var/lib/tally --create-home tally \
    && chmod 700 /var/lib/tally
COPY --from=build /src/target/dist/tally /usr/local/bin/tally
USER tally
# Settings by the environment, so that every `tally` in the container works on the same data.
ENV TALLY_DATA=/var/lib/tally \
    TALLY_HTTP_LISTEN=0.0.0.0:8420 \
    TALLY_RESP_LISTEN=0.0.0.0:8421
VOLUME /var/lib/tally
EXPOSE 8420 8421
# SIGTERM drains; give it longer than http.drain_timeout (20 s).
STOPSIGNAL SIGTERM
ENTRYPOINT ["tally"]
CMD ["serve"]
