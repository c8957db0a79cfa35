# The images of Durable MCP, from source and with nothing but Docker:
#
#	docker build --target connector -t durable-mcp-connector .
#	docker build --target proxy -t durable-mcp-proxy .
#
# The other targets are what compose.yaml runs beside them. docs/containers.md
# says how the images are used, and how an MCP server gets into that of the proxy.

# What compiles the programs, and what they run on. They are static, so any image
# will do; this one has CA certificates and time zones, and no shell.
ARG GO=golang:1.26
ARG BASE=gcr.io/distroless/static-debian12:nonroot

FROM ${GO} AS build
# Where modules come from, if not from the default.
ARG GOPROXY
# What the commands say to --version, since there is no repository to see a commit in.
ARG VERSION
ENV CGO_ENABLED=0 GOFLAGS="'-ldflags=-s -w \
-X github.com/durable-mcp/durable-mcp/connector/internal/cli.linkedVersion=$VERSION \
-X github.com/durable-mcp/durable-mcp/proxy-worker/internal/cli.linkedVersion=$VERSION'"
WORKDIR /src
COPY . .
RUN ["go", "build", "-trimpath", "-o", "/out/", \
	"./connector/cmd/durable-mcp-connector", \
	"./proxy-worker/cmd/durable-mcp-proxy", \
	"./examples/lucky-number", \
	"./examples/weather-proxy/weather-server", \
	"./examples/proxy-library/almanac"]

# The user is a number, since Kubernetes cannot tell that a name is not root's.
FROM ${BASE} AS base
USER 65532:65532
LABEL org.opencontainers.image.source="https://github.com/durable-mcp/durable-mcp" \
	org.opencontainers.image.documentation="https://github.com/durable-mcp/durable-mcp/blob/main/docs/containers.md" \
	org.opencontainers.image.licenses="MIT"

FROM base AS lucky-number
COPY --from=build /out/lucky-number /usr/local/bin/
ENTRYPOINT ["/usr/local/bin/lucky-number"]

FROM base AS weather-server
COPY --from=build /out/weather-server /usr/local/bin/
EXPOSE 8070
ENTRYPOINT ["/usr/local/bin/weather-server", "--listen", "0.0.0.0:8070"]

FROM base AS proxy
LABEL org.opencontainers.image.title="durable-mcp-proxy" \
	org.opencontainers.image.description="Serves the tools of MCP servers as Temporal Nexus services, each tool call durable"
COPY --from=build /out/durable-mcp-proxy /usr/local/bin/
ENV DURABLE_MCP_CONFIG=/etc/durable-mcp/mcp.json DURABLE_MCP_LISTEN=0.0.0.0:8081
EXPOSE 8081
ENTRYPOINT ["/usr/local/bin/durable-mcp-proxy"]

# A proxy with an MCP server that it starts itself.
FROM proxy AS almanac-proxy
COPY --from=build /out/almanac /usr/local/bin/

FROM base AS connector
LABEL org.opencontainers.image.title="durable-mcp-connector" \
	org.opencontainers.image.description="Serves Temporal Nexus services as an MCP server, each tool call a durable operation"
COPY --from=build /out/durable-mcp-connector /usr/local/bin/
# For --transport http: nobody outside reaches a container's loopback address.
ENV DURABLE_MCP_LISTEN=0.0.0.0:8080
EXPOSE 8080
ENTRYPOINT ["/usr/local/bin/durable-mcp-connector"]
