# tally in a small image. Not built by the project's own checks: read it before you rely on it.
#
#   docker build -t tally .
#   docker run -p 127.0.0.1:8420:8420 -p 127.0.0.1:8421:8421 -v tally-data:/var/lib/tally tally
#
# Every request needs an API key. Make one first:
#   docker exec CONTAINER tally keys create --role admin

# The digest decides what is pulled, and the tag only names it. The digest is that of the index, for all platforms. To renew it,
# take the one that the registry has now, and check that the tag still names the release that you want:
#   docker buildx imagetools inspect rust:1.95.0-bookworm --format '{{.Manifest.Digest}}'
#   docker buildx imagetools inspect debian:bookworm-slim --format '{{.Manifest.Digest}}'
FROM rust:1.95.0-bookworm@sha256:6258907abe69656e41cd992e0b705cdcfabcbbe3db374f92ed2d47121282d4a1 AS build
WORKDIR /src
COPY . .
# `docker build --build-arg COMMIT=$(git rev-parse HEAD)`: `tally --version --verbose` says it.
ARG COMMIT=unknown
RUN TALLY_BUILD_COMMIT=$COMMIT cargo build --profile dist --locked --package tally

FROM debian:bookworm-slim@sha256:3783cc01769c7b2b1b83a5c5ad96c815348e28ed7da68e2e3687004faa906251
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
