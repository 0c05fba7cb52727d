"""A Spark Connect server at the port that is given. It says when it is ready, and ends with its standard input."""

import sys

from tests.tables.clusters import started

if __name__ == "__main__":
    connect = {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": sys.argv[1],
    }
    session = started("local[2]", **connect)
    print("ready", flush=True)
    sys.stdin.read()
    session.stop()
