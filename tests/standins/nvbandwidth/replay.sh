#!/bin/sh
# Plays nvbandwidth 0.8 on two GPUs: the JSON of one test (-t), in the tool's form, with figures of the size two B200 give.
for word; do test=$word; done
emit() { # DESCRIPTION SUM ROW...
    about=$1 sum=$2
    shift 2
    rows=
    for row; do
        cells=
        for cell in $row; do cells="$cells${cells:+, }\"$cell\""; done
        rows="$rows${rows:+, }[$cells]"
    done
    printf '{\n"nvbandwidth" : {\n"CUDA Runtime Version" : 13020,\n"GPU Device list" : ["0: NVIDIA B200", "1: NVIDIA B200"],\n'
    printf '"testcases" : [{"bandwidth_description" : "%s", "bandwidth_matrix" : [%s], "name" : "%s", "status" : "Passed", "sum" : %s}],\n' \
        "$about" "$rows" "$test" "$sum"
    printf '"version" : "v0.8"\n}\n}\n\n'
}
case $test in
    host_to_*_memcpy_ce) emit "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)" 111.2 "55.7 55.5" ;;
    device_to_host_memcpy_ce | all_to_host_memcpy_ce) emit "memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)" 112.2 "56.3 55.9" ;;
    host_device_latency_sm) emit "memory latency SM CPU(row) <-> GPU(column) (ns)" 1978 "986 992" ;;
    device_to_device_memcpy_read_ce) emit "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)" 1536 "N/A 768.2" "767.8 N/A" ;;
    device_to_device_bidirectional_memcpy_read_ce)
        emit "memcpy CE GPU(row) <-> GPU(column) Total bandwidth (GB/s)" 3053 "N/A 763" "764 N/A" "N/A 762" "763 N/A" "N/A 1525" "1527 N/A"
        ;;
    device_to_device_latency_sm)
        printf '{\n"nvbandwidth" : {\n"testcases" : [{"name" : "%s", "status" : "Waived"}],\n"version" : "v0.8"\n}\n}\n\n' "$test"
        ;;
    *)
        printf '{\n"nvbandwidth" : {\n"testcases" : [{"name" : "%s", "status" : "Not Found"}],\n"version" : "v0.8"\n}\n}\n\n' "$test"
        exit 1
        ;;
esac
