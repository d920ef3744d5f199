#!/bin/sh
# Plays nvidia-smi -lms for two RTX PRO 6000: rows as its --format=csv,noheader,nounits prints them, until it is ended.
case "$1" in --query-gpu=*) ;; *) exit 2 ;; esac
while :; do
    echo "0, NVIDIA RTX PRO 6000 Blackwell Server Edition, 2, 30.39, 180, 405, 25, [N/A], 2, 0, 0, 0x0000000000000004, 0, 0"
    echo "1, NVIDIA RTX PRO 6000 Blackwell Server Edition, 2, 428.54, 2310, 12481, 71, [N/A], 40960, 97, 41, 0x0000000000000000, [N/A], [N/A]"
    sleep 0.05
done
