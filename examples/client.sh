#!/bin/sh
# Calls one tool: `client.sh URL TOKENFILE TOOL JSON` prints its answer; exit status 22 where the call is refused.
set -eu
url=$1 token_file=$2 tool=$3 arguments=$4
# The token goes through a pipe: on a command line every user of the machine could read it.
printf 'Authorization: Bearer %s\n' "$(cat "$token_file")" |
    curl --silent --show-error --fail-with-body --header @- --data-raw "$arguments" "$url/tools/$tool"
