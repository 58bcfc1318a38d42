#!/bin/bash
# A Ray cluster on the nodes of a SLURM job, and one command of roadaware on it. Given again, it goes on where it was:
#   sbatch --nodes=4 docs/cluster/slurm.sh triage /shared/night --top 100 --output /shared/runs/night
# Every node needs the same environment with roadaware[scale], and the same folders.
#SBATCH --job-name=roadaware
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --time=08:00:00
# The command hears of its end two minutes before, and leaves what it has whole.
#SBATCH --signal=B:TERM@120
set -euo pipefail
if (($# == 0)); then
    echo "expected a command of roadaware, such as: sbatch $0 simulate --scenes 1000 --output /shared/set" >&2
    exit 2
fi
cpus=${SLURM_CPUS_PER_TASK:?start it by sbatch, with --cpus-per-task}
port=${RAY_PORT:-6379}
mapfile -t nodes < <(scontrol show hostnames "${SLURM_JOB_NODELIST:?start it by sbatch}")
others=$((${#nodes[@]} - 1))

pids=()
stop() {
    ((${#pids[@]})) && kill "${pids[@]}" 2>/dev/null
    wait
}
trap stop EXIT

# Steps overlap: the command shares its node with the head.
step=(srun --overlap --ntasks-per-node=1 --cpus-per-task="$cpus")
ip=$("${step[@]}" --nodes=1 --ntasks=1 --nodelist="${nodes[0]}" hostname --ip-address)
export RAY_ADDRESS=${ip%% *}:$port RAY_USAGE_STATS_ENABLED=0
start=(ray start --num-cpus="$cpus" --disable-usage-stats --block)
"${step[@]}" --nodes=1 --ntasks=1 --nodelist="${nodes[0]}" \
    "${start[@]}" --head --node-ip-address="${ip%% *}" --port="$port" --include-dashboard=false &
pids+=($!)
# A minute or two on busy nodes; whoever joins before there is a head gives up.
for ((left = ${RAY_WAIT_S:-300}; ; left--)); do
    ray health-check --address "$RAY_ADDRESS" >/dev/null 2>&1 && break
    if ((left <= 0)) || ! kill -0 "${pids[0]}" 2>/dev/null; then
        echo "the head of Ray did not start on ${nodes[0]} ($RAY_ADDRESS): see above, or set RAY_PORT where the port is taken" >&2
        exit 1
    fi
    sleep 1
done
if ((others)); then
    list=$(IFS=,; echo "${nodes[*]:1}")
    "${step[@]}" --nodes="$others" --ntasks="$others" --nodelist="$list" "${start[@]}" --address="$RAY_ADDRESS" &
    pids+=($!)
fi

# As many workers as the job has processors: those of nodes that have not joined yet wait for them.
roadaware "$@" --on ray://auto --processes "$((cpus * ${#nodes[@]}))" &
command=$!
trap 'kill -TERM "$command" 2>/dev/null' TERM INT
code=0
wait "$command" || code=$?
# A signal ends the first wait, and the command later.
while kill -0 "$command" 2>/dev/null; do
    code=0
    wait "$command" || code=$?
done
exit "$code"
