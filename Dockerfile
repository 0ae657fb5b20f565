# offsets-log in a container, without root:
#   docker build -t offsets-log .
#   docker run --rm --user "$(id -u):$(stat -c %g /var/lib/kafka/data)" \
#       -v /var/lib/kafka/data:/data:ro -v "$PWD:/out" offsets-log report /data --to report.html
# The group is the one that may read a data directory of mode 0750; what is written goes to /out.
# Kernels for large logs are in the image; for processors older than x86-64-v3, or others, they are compiled where it runs,
# and --volume offsets-log:/home/reader/.cache keeps them.
# With Spark and a JVM: docker build --build-arg EXTRAS=spark -t offsets-log:spark .
ARG PYTHON=3.12

FROM python:${PYTHON}-slim AS built
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY offsets_log offsets_log
COPY spark_jobs spark_jobs
COPY pyspark_offsets_log pyspark_offsets_log
COPY cli cli
COPY tools/shipped_kernels.py tools/
RUN pip install --no-cache-dir . && python -m tools.shipped_kernels
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:${PYTHON}-slim
ARG EXTRAS=restore
RUN if [ "${EXTRAS}" != "${EXTRAS#*spark}" ]; then \
        apt-get update && apt-get install --yes --no-install-recommends default-jre-headless \
        && rm -rf /var/lib/apt/lists/*; \
    fi
COPY --from=built /wheels /wheels
RUN pip install --no-cache-dir "$(ls /wheels/*.whl)[${EXTRAS}]" && rm -rf /wheels
# Any user may be given with --user: home, for kernels, and /out are anybody's.
RUN useradd --create-home reader && chmod 1777 /home/reader && mkdir --mode=1777 /out
ENV HOME=/home/reader
USER reader
WORKDIR /out
ENTRYPOINT ["offsets-log"]
CMD ["--help"]
