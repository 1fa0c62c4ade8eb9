"""Lines as each trainer prints them, and lines that only look like them: what is read, and what is not."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api_client.models.logs import LogLine
from tui.analysis.progress.fold import ProgressFold
from tui.analysis.progress.lines.reader import Reader, parse
from tui.analysis.progress.lines.reading import ParsedMetrics

NAN, INF = math.nan, math.inf

# fmt: off
EXACTLY: list[tuple[str, dict[str, Any]]] = [
    ("{'loss': '0.9132', 'grad_norm': '0.71', 'learning_rate': '1.9e-05', 'epoch': '1.3'}", {'loss': 0.9132, 'grad_norm': 0.71, 'learning_rate': 1.9e-05, 'epoch': 1.3}),
    ("{'eval_loss': 1.052, 'eval_runtime': 41.7, 'eval_samples_per_second': 96.1, 'epoch': 2.0}", {'eval_loss': 1.052, 'epoch': 2.0}),
    (" 46%|████▌     | 4120/9000 [6:12:03<7:10:44,  5.30s/it]{'loss': 0.0012, 'grad_norm': 0.4, 'reward': 0.61, 'rewards/chosen': -1.2, 'kl': 0.003, 'epoch': 0.46}", {'loss': 0.0012, 'grad_norm': 0.4, 'epoch': 0.46, 'step': 4120, 'total_steps': 9000, 'step_time_s': 5.3, 'from_bar': True}),
    ("{'train_runtime': 47123.5, 'train_samples_per_second': 12.3, 'train_loss': 1.1, 'epoch': 3.0}", {'epoch': 3.0, 'samples_per_s': 12.3}),
    ('  0%|          | 0/9000 [00:00<?, ?it/s]', {'step': 0, 'total_steps': 9000, 'from_bar': True}),
    ('Training:  31%|███▏      | 310/1000 [12:03<26:50,  2.50it/s, loss=0.0912, lr=1e-5]', {'step': 310, 'total_steps': 1000, 'step_time_s': 0.4, 'loss': 0.0912, 'learning_rate': 1e-05, 'from_bar': True}),
    ('(TaskRunner pid=2114) Training Progress:  46%|████▌     | 412/900 [6:12:03<7:10:44, 53.1s/it]', {'step': 412, 'total_steps': 900, 'step_time_s': 53.1, 'from_bar': True, 'rank': 2114}),
    ('1|40|Loss: 0.9132:   4%|▍         | 40/900 [01:00<21:00,  1.50s/it]', {'step': 40, 'epoch': 40 / 900, 'epoch_step': 40, 'epoch_steps': 900, 'whole_epochs': 0, 'loss': 0.9132, 'step_time_s': 1.5, 'from_bar': True}),
    ('\r\x1b[32m 45%|██        | 4118/9000 [01:00<21:00,  5.30s/it]\x1b[0m\r\x1b[32m 45%|██        | 4119/9000 [01:00<21:00,  5.30s/it]\x1b[0m\r\x1b[32m 45%|██        | 4120/9000 [01:00<21:00,  5.30s/it]\x1b[0m', {'step': 4120, 'total_steps': 9000, 'step_time_s': 5.3, 'from_bar': True}),
    ('Epoch 3:  46%|████▌     | 41/90 [00:12<00:14,  3.40it/s, v_num=0, train_loss=0.913]', {'step': 311, 'epoch_step': 41, 'epoch_steps': 90, 'whole_epochs': 3, 'epoch': 3.4555555555555557, 'loss': 0.913, 'step_time_s': 0.29411764705882354, 'from_bar': True}),
    ('Epoch 3/9  ━━━━━━━━━━╸━━━━━━ 41/90 0:00:12 • 0:00:14 3.40it/s v_num: 0.000 train_loss: 0.913', {'step': 311, 'total_steps': 900, 'total_epochs': 10, 'epoch_step': 41, 'epoch_steps': 90, 'whole_epochs': 3, 'epoch': 3.4555555555555557, 'loss': 0.913, 'step_time_s': 0.29411764705882354, 'from_bar': True}),
    ('Epoch 2/3:  46%|████▌     | 41/90 [00:12<00:14,  3.40it/s, loss=0.9]', {'step': 131, 'total_steps': 270, 'total_epochs': 3, 'epoch_step': 41, 'epoch_steps': 90, 'whole_epochs': 1, 'epoch': 1.4555555555555555, 'loss': 0.9, 'step_time_s': 0.29411764705882354, 'from_bar': True}),
    ('Epoch 3/10', {'epoch': 2.0, 'total_epochs': 10.0, 'whole_epochs': 2}),
    ('41/90 ━━━━━━━━━━━━━━━━━━━━ 12s 290ms/step - accuracy: 0.7012 - loss: 0.9132 - learning_rate: 1.0000e-04', {'epoch_step': 41, 'epoch_steps': 90, 'loss': 0.9132, 'learning_rate': 0.0001, 'step_time_s': 0.29}),
    ('\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x1b[1m90/90\x1b[0m \x1b[32m━━━━━━━━\x1b[0m\x1b[37m━━\x1b[0m \x1b[1m26s\x1b[0m 2s/step - loss: 0.9132 - val_loss: 1.0500', {'epoch_step': 90, 'epoch_steps': 90, 'loss': 0.9132, 'eval_loss': 1.05, 'step_time_s': 2.0}),
    ('41/90 [============>.................] - ETA: 12s - loss: 0.9132 - accuracy: 0.70', {'epoch_step': 41, 'epoch_steps': 90, 'loss': 0.9132}),
    (' [2024-05-01 12:00:00] iteration     4120/    9000 | consumed samples:       527360 | elapsed time per iteration (ms): 5312.4 | throughput per GPU (TFLOP/s/GPU): 412.3 | learning rate: 1.900000E-05 | global batch size:   128 | lm loss: 9.132000E-01 | loss scale: 1.0 | grad norm: 0.710 | number of skipped iterations:   0 | number of nan iterations:   0 |', {'step': 4120, 'total_steps': 9000, 'learning_rate': 1.9e-05, 'loss': 0.9132, 'grad_norm': 0.71, 'step_time_s': 5.3124, 'samples_per_s': 24.094571191928317}),
    (' validation loss at iteration 1000 | lm loss value: 1.050000E+00 | lm loss PPL: 2.857651E+00 |', {'step': 1000, 'eval_loss': 1.05}),
    ('[rank0]:[titan] 2025-05-01 12:00:00,123 - root - INFO - \x1b[31mstep: 4120  \x1b[32mloss:  0.9132  \x1b[38;2;180;60;0mgrad_norm:  0.7100  \x1b[33mmemory: 61.20GiB(77.31%)  \x1b[34mtps: 1,234  \x1b[36mtflops: 412.30  \x1b[35mmfu: 41.69%\x1b[39m', {'step': 4120, 'loss': 0.9132, 'grad_norm': 0.71, 'tokens_per_s': 1234.0, 'rank': 0}),
    ('[titan] - root - INFO - Training starts at step 1, with local batch size 8, global batch size 64, gradient accumulation steps 1, sequence length 4096, total steps 1000 (warmup 200)', {'step': 0, 'total_steps': 1000}),
    ('[titan] - INFO - validate step: 100  loss:  1.0500  memory: 61.2GiB(77%)  tps: 1,234', {'step': 100, 'eval_loss': 1.05}),
    ('Training epoch 0, iteration 4119/8999 | lr: 1.9e-05 | global_batch_size: 128 | global_step: 4119 | peak_memory_usage: 63G | reduced_train_loss: 0.913 | train_step_timing in s: 5.31 | val_loss: 1.05', {'step': 4120, 'total_steps': 9000, 'epoch': 0.0, 'learning_rate': 1.9e-05, 'loss': 0.913, 'step_time_s': 5.31, 'eval_loss': 1.05}),
    ('Epoch 0: :  46%|████▌     | 4120/9000 [6:12:03<7:20:41, v_num=, reduced_train_loss=0.913, global_step=4119.0, consumed_samples=527360.0, train_step_timing in s=5.310]', {'step': 4120, 'epoch': 0.4577777777777778, 'epoch_step': 4120, 'epoch_steps': 9000, 'whole_epochs': 0, 'loss': 0.913, 'step_time_s': 5.31, 'from_bar': True}),
    ('(TaskRunner pid=2114) step:412 - global_seqlen/mean:26368.0 - actor/entropy:0.5 - actor/pg_loss:np.float64(-0.0123) - actor/kl_loss:0.0004 - actor/grad_norm:0.71 - actor/lr:1e-06 - critic/rewards/mean:0.61 - timing_s/step:53.1 - perf/throughput:1900.5', {'step': 412, 'loss': -0.0123, 'grad_norm': 0.71, 'learning_rate': 1e-06, 'step_time_s': 53.1, 'tokens_per_s': 1900.5, 'rank': 2114}),
    ('step:10 - train/loss:0.91 - train/lr(1e-3):0.019', {'step': 10, 'loss': 0.91, 'learning_rate': 1.9e-05}),
    ('[2024-05-01 12:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 0] step=4120, skipped=0, lr=[1.9e-05, 1.9e-05], mom=[(0.9, 0.95), (0.9, 0.95)]', {'step': 4120, 'learning_rate': 1.9e-05}),
    ('[INFO] [timer.py:199:stop] epoch=0/micro_step=8240/global_step=4120, RunningAvgSamplesPerSec=12.3, CurrSamplesPerSec=12.4, MemAllocated=10.2GB, MaxMemAllocated=14GB', {'step': 4120, 'samples_per_s': 12.4, 'epoch': 0.0}),
    ('steps: 4120 loss: 0.9132 iter time (s): 5.312 samples/sec: 24.1', {'step': 4120, 'loss': 0.9132, 'step_time_s': 5.312, 'samples_per_s': 24.1}),
    ('{"step": 310, "total_steps": 1000, "loss": 0.41, "lr": 1e-05}', {'step': 310, 'total_steps': 1000, 'loss': 0.41, 'learning_rate': 1e-05}),
    ('2024-05-01 | INFO | train_inner | {"epoch": 1, "update": 0.5, "loss": "7.123", "num_updates": "100", "lr": "1e-05", "gnorm": "0.7", "wps": "12345.6"}', {'epoch': 1.0, 'loss': 7.123, 'step': 100, 'learning_rate': 1e-05, 'grad_norm': 0.7, 'tokens_per_s': 12345.6}),
    ('Rank 0: step=10, loss=2.1', {'step': 10, 'loss': 2.1, 'rank': 0}),
    ('iter 40: loss 4.5012, time 23.12ms, mfu 12.10%', {'step': 40, 'loss': 4.5012, 'step_time_s': 0.02312}),
    ('Epoch [2/3], Step [40/900], Loss: 1.2345', {'step': 940, 'total_steps': 2700, 'epoch': 1.0444444444444445, 'total_epochs': 3.0, 'loss': 1.2345, 'epoch_step': 40, 'epoch_steps': 900, 'whole_epochs': 1}),
    ('Epoch: [1]  [ 40/900]  eta: 0:01:00  lr: 0.1  loss: 1.2 (1.3)  img/s: 12', {'step': 940, 'epoch': 1.0444444444444445, 'learning_rate': 0.1, 'loss': 1.2, 'epoch_step': 40, 'epoch_steps': 900, 'whole_epochs': 1, 'samples_per_s': 12.0}),
    ('Train Epoch: 2 [30000/60000 (50%)]\tLoss: 2.301', {'epoch': 2.0, 'loss': 2.301}),
    ('step   40/900 | loss 1.234567 (+1.2z)| norm 0.71 (-0.2z)| lr 1.90e-05 | 5300.10 ms | 41.2% bf16 MFU | 98765 tok/s', {'step': 40, 'total_steps': 900, 'loss': 1.234567, 'grad_norm': 0.71, 'learning_rate': 1.9e-05, 'tokens_per_s': 98765.0}),
    ('step 00040/21400 (0.19%) | loss: 4.51 | grad norm: 0.7123 | lrm: 1.00 | dt: 5312.40ms | tok/sec: 98,765 | mfu: 41.69', {'step': 40, 'total_steps': 21400, 'loss': 4.51, 'grad_norm': 0.7123, 'tokens_per_s': 98765.0, 'step_time_s': 5.3124}),
    ('Model weights saved in /mnt/ckpts/checkpoint-4000/model.safetensors', {'checkpoint': 'checkpoint-4000'}),
    ('saving checkpoint at iteration    4000 to /mnt/ckpts in torch_dist format', {'checkpoint': 'iter_0004000'}),
    ('  successfully saved checkpoint from iteration    4000 to /mnt/ckpts', {'checkpoint': 'iter_0004000'}),
    ('Saving the checkpoint at step 500 (async).', {'checkpoint': 'step-500'}),
    ('[Torch] Checkpoint global_step4000 is ready now!', {'checkpoint': 'global_step4000'}),
    ('(TaskRunner pid=2114) local_global_step_folder: /mnt/ckpts/global_step_500', {'checkpoint': 'global_step_500'}),
    ('saved checkpoint to /mnt/ckpts/best', {'checkpoint': 'best'}),
    ('Saving checkpoint: s3://bucket/run/last.ckpt', {'checkpoint': 'last.ckpt'}),
]
"""Lines with everything that is read in them."""

AT_LEAST: list[tuple[str, dict[str, Any]]] = [
    ("{'loss': 1.8324, 'token_acc': 0.612, 'grad_norm': 1.21, 'learning_rate': 1e-05, 'memory(GiB)': 20.14, 'train_speed(iter/s)': 0.25, 'epoch': 0.1, 'global_step/max_steps': '10/100', 'percentage': '10.00%', 'elapsed_time': '1m 2s', 'remaining_time': '9m 20s'}", {'loss': 1.8324, 'grad_norm': 1.21, 'learning_rate': 1e-05, 'step': 10, 'total_steps': 100}),
    ("{'loss': 1.1, 'grad_norm': 0.5, 'learning_rate': 2e-05, 'memory/max_active (GiB)': 12.3, 'tokens_per_second_per_gpu': 1234.0, 'epoch': 0.01}", {'loss': 1.1, 'tokens_per_s': 1234.0}),
    ('Epochs:  30%|███       | 3/10 [00:10<00:20,  3.00s/epoch, loss=0.4]', {'epoch': 3.0, 'total_epochs': 10.0, 'loss': 0.4}),
    ('Train:  45%|████▌     | 45000/100000 [00:12<00:14, 3821.11samples/s, loss=0.9]', {'loss': 0.9}),
    ('Epoch 0:  10%|█         | 10/100 [00:01<00:09,  9.90it/s, v_num=0, train_loss_step=2.300, train_loss_epoch=2.5]', {'step': 10, 'epoch_steps': 100, 'loss': 2.3}),
    ('\rEpoch 1: 100%|██████████| 100/100 [00:10<00:00,  9.91it/s, v_num=3, train_loss=0.51, val_loss=0.62]', {'step': 200, 'loss': 0.51, 'eval_loss': 0.62}),
    ('1875/1875 - 5s - 3ms/step - accuracy: 0.9155 - loss: 0.2912 - val_accuracy: 0.95 - val_loss: 0.1301', {'loss': 0.2912, 'eval_loss': 0.1301, 'epoch_step': 1875, 'step_time_s': 0.003}),
    ('[default7]: iteration       10/  500000 | consumed samples: 10240 | consumed tokens: 20971520 | elapsed time per iteration (s): 12.52 | learning rate: 1.2E-05 | global batch size:  1024 | lm loss: 9.1E+00 | grad norm: 2.3 | samples per second: 81.8 | TFLOPs: 110.2 |', {'step': 10, 'loss': 9.1, 'step_time_s': 12.52, 'rank': 7}),
    (' validation loss at iteration 1000 on validation set | lm loss value: 1.050000E+00 | lm loss PPL: 2.8E+00 |', {'step': 1000, 'eval_loss': 1.05}),
    ('[rank0]:2024-08-01 12:00:00,123 - root - INFO - \x1b[36mstep: 10  \x1b[32mloss:  7.9021  \x1b[33mmemory: 40.14GiB(50.70%)  \x1b[34mwps: 2,345  \x1b[35mmfu: 31.20%\x1b[39m', {'step': 10, 'loss': 7.9021, 'tokens_per_s': 2345.0, 'rank': 0}),
    ('(TaskRunner pid=1234) step:1 - training/global_step:1 - training/epoch:0 - critic/score/mean:0.1 - actor/pg_loss:-0.002 - actor/grad_norm:0.3 - perf/throughput:812.1 - timing_s/step:61.2', {'step': 1, 'loss': -0.002, 'grad_norm': 0.3, 'tokens_per_s': 812.1, 'step_time_s': 61.2}),
    ('Epoch: 0 | Step: 10 | PPO Epoch: 1 | Actor Loss: 0.101 | Critic Loss: 0.22 | Unsupervised Loss: 0.0', {'step': 10, 'loss': 0.101}),
    ('[2024-01-01 12:00:00,123] [    INFO] - loss: 1.2345, learning_rate: 1e-05, global_step: 10, current_memory_allocated: 12.1, interval_runtime: 1.2, interval_samples_per_second: 3.4', {'step': 10, 'loss': 1.2345, 'learning_rate': 1e-05}),
    ('Epoch 1 | iter 10 step 5 | loss train: 1.234, val: n/a | iter time: 123.45 ms (step) remaining time: 0:10:00', {'loss': 1.234}),
    ('2023/01/01 12:00:00 - mmengine - INFO - Epoch(train)   [2][ 50/1000]  lr: 1.0000e-04  eta: 1:00:00  time: 0.5012  data_time: 0.1  memory: 1234  loss: 1.2301  loss_cls: 0.5', {'step': 1050, 'loss': 1.2301, 'learning_rate': 0.0001}),
    ('Train: 0 [  50/1251 (  4%)]  Loss: 6.931 (6.942)  Time: 0.512s, 1024.00/s  (0.512s, 1024.00/s)  LR: 1.000e-05  Data: 0.010 (0.010)', {'step': 50, 'loss': 6.931, 'learning_rate': 1e-05}),
    ('Epoch: [1][  10/5005]\tTime  0.512 ( 0.600)\tData  0.010 ( 0.100)\tLoss 6.9012e+00 (6.9312e+00)\tAcc@1   0.00 (  0.10)', {'step': 5015, 'loss': 6.9012}),
    ('2026-01-01 12:00:00.123 | INFO     | __main__:train:88 - step 100/2000 | loss=0.512 | lr=1.00e-04 | grad_norm=0.91 | 12,345 tok/s', {'step': 100, 'total_steps': 2000, 'loss': 0.512, 'learning_rate': 0.0001, 'grad_norm': 0.91, 'tokens_per_s': 12345.0}),
    ('0: step=100 loss=0.5', {'step': 100, 'loss': 0.5, 'rank': 0}),
    ('[1,3]<stdout>:step=100 loss=0.5', {'step': 100, 'loss': 0.5, 'rank': 3}),
    ('[Epoch 1] [Batch 10/200] [Loss: 0.5]', {'step': 10, 'epoch_steps': 200, 'loss': 0.5}),
    ('{"train/loss": 2.0, "trainer/global_step": 10, "train/learning_rate": 1e-05}', {'step': 10, 'loss': 2.0, 'learning_rate': 1e-05}),
    ('[INFO|trainer.py:2418] >>   Total optimization steps = 9,000', {'total_steps': 9000}),
    ('\\        /    Data Parallel GPUs = 1 | Total steps = 60', {'total_steps': 60}),
    ('Epoch 00003: val_loss improved from 0.51 to 0.42, saving model to best.keras', {'checkpoint': ''}),
    ("Epoch 0, global step 99: 'loss' reached 1.2 (best 1.2), saving model to '/ckpts/model--reduced_train_loss=1.20-epoch=0.ckpt' as top 1", {'checkpoint': 'model--reduced_train_loss=1.20-epoch=0.ckpt'}),
    ('Saving the model to /mnt/ckpts/step_500-unsharded', {'checkpoint': 'step_500-unsharded'}),
    ('Async checkpoint save for step 100 (/mnt/ckpts/step_100) finalized successfully.', {'checkpoint': 'step_100'}),
    ("{'loss': 0.912, 'lr': 1e-5} step 299/600", {'step': 299, 'total_steps': 600, 'loss': 0.912}),
    ("step 299/600 | {'loss': 1.2, 'grad_norm': 0.3}", {'step': 299, 'total_steps': 600, 'grad_norm': 0.3}),
    ("{'loss': 1.2, 'grad_norm': tensor(0.5123, device='cuda:0'), 'learning_rate': np.float64(1e-05), 'epoch': 0.2}", {'grad_norm': 0.5123, 'learning_rate': 1e-05}),
    ("\r  2%|▏         | 19/1000 [01:35<1:21:40,  5.00s/it]\r  2%|▏         | 20/1000 [01:40<1:21:40,  5.00s/it]\r                                                            \r{'loss': 1.51, 'grad_norm': 0.8, 'learning_rate': 1e-4, 'epoch': 0.02}", {'step': 20, 'total_steps': 1000, 'loss': 1.51, 'epoch': 0.02}),
    ('[rank3]: \r  2%|▏         | 20/1000 [01:40<1:21:40,  5.00s/it]\r    ', {'step': 20, 'rank': 3}),
    ('2026-01-02 03:04:05,678 - INFO - [rank1]: step=4 loss=0.9', {'step': 4, 'rank': 1}),
    ('(RayTrainWorker pid=123, ip=10.0.0.1) step=4 loss=0.9', {'step': 4, 'rank': 123}),
    ('Epoch 3:  45%|####5     | 703/1563 [00:41<00:50, 16.96it/s, v_num=kx9g, train/loss_step=0.345, val/loss=0.51, train/loss_epoch=0.4]', {'loss': 0.345, 'eval_loss': 0.51, 'epoch_step': 703}),
    (' [ 40/120 01:20 < 02:44, 0.49 it/s, Epoch 0.33/1]', {'step': 40, 'total_steps': 120, 'epoch': 0.33}),
    ('      1/100      3.27G      1.123      2.871      1.321         38        640:  50%|█████     | 40/80 [00:02<00:00,  3.41it/s]', {'step': 40, 'total_steps': 8000, 'total_epochs': 100}),
    ('45/Unknown 12s 200ms/step - loss: 0.51', {'epoch_step': 45, 'loss': 0.51, 'step_time_s': 0.2}),
    ('Step 12/467 | Average reward: 0.2512 | Average sequence length: 233.10', {'step': 12, 'total_steps': 467}),
    ('10/17/2025 16:31:56 [INFO|DP=0|PP=0|TP=0]: iteration: 3281 / 378950 | consumed_tokens: 85.8G | elapsed_time_per_iteration_ms: 11.5K | tokens_per_sec: 22.8K | tokens_per_sec_per_gpu: 11.4K | global_batch_size: 64 | lm_loss: 2.38 | lr: 1e-05 | model_tflops_per_gpu: 38.3 | grad_norm: 1.25', {'step': 3281, 'total_steps': 378950, 'loss': 2.38, 'grad_norm': 1.25, 'tokens_per_s': 22800.0}),
    ('2026-08-10 15:48:59 | INFO | root | step 13 | epoch 0 | loss 0.6407 | grad_norm 1.1754 | lr 1.00e-05 | mem 31.55 GiB | tps 6574.51(821.81/gpu) | num_label_tokens 26779', {'step': 13, 'loss': 0.6407, 'grad_norm': 1.1754, 'tokens_per_s': 6574.51}),
    ('completed step: 9, seconds: 5.667, TFLOP/s/device: 134.924, Tokens/s/device: 8672.758, total_weights: 196608, loss: 10.374', {'step': 9, 'loss': 10.374, 'tokens_per_s': 8672.758}),
    ('03:04:05    INFO Step 12 | Time: 61.20s | Loss: 0.0123 | Entropy: 0.3123 | Mismatch KL: 0.0012 | Grad. Norm: 0.0812 | LR: 1.00e-06 | Throughput: 12345 tokens/s | MFU: 31.2%', {'step': 12, 'loss': 0.0123, 'learning_rate': 1e-06, 'tokens_per_s': 12345.0}),
    ("(PPOTrainer pid=123) ✨Global step 12: {'policy_loss': 0.0123, 'actor_lr': 9e-07, 'kl': 0.01, 'reward': 0.31}", {'step': 12, 'loss': 0.0123}),
    ('Episode [2/3]:  10%|█         | 10/100 [10:10<91:30, 61.01s/it]', {'step': 110, 'total_steps': 300, 'step_time_s': 61.01}),
    ('[epoch=1/3][batch=120/4800]:', {'step': 120, 'total_steps': 4800}),
    ('│ training_iteration                 3 │', {'step': 3}),
    ('(TorchTrainer pid=12) │ train_loss                   0.30025 │', {'loss': 0.30025}),
    ('|    total_timesteps      | 20480       |', {'step': 20480}),
    ('{"message": "step 3/10 loss=0.4", "level": "INFO", "user": "root"}', {'step': 3, 'loss': 0.4}),
    ('iterations:57, train acc:0.440, train loss:616.408, train loss ctc:1156.613', {'step': 57, 'loss': 616.408}),
    ('DEEPMD INFO batch 14700: trn: rmse = 8.38e+00, rmse_e = 1.01e-01, lr = 9.64e-04', {'step': 14700, 'learning_rate': 9.64e-4}),
    ('2019-02-19 18:37:12,571 DEV  : loss 0.03877527 - f-score 0.5586', {'eval_loss': 0.03877527}),
    ('Epoch 1 train Loc Loss: 0.0057 Cls Loss: 0.0075 Tot Loss: 0.0066 Accu :0.0018', {'epoch': 1.0, 'loss': 0.0066}),
    ('VALIDATION: val Loc Loss: 0.0061 Cls Loss: 0.0077 Tot Loss: 0.0069 Accu :0.0012', {'eval_loss': 0.0069}),
    ('I0914 08:12:11.302101 utils.py:910] [1200] training_loss = 6.2120', {'step': 1200, 'loss': 6.212}),
    ('INFO - allennlp.training.trainer - Epoch 0/139', {'epoch': 0.0}),
    ('ppdet.utils.checkpoint INFO: Save checkpoint: output/yolov3_coco', {'checkpoint': 'yolov3_coco'}),
    ('|    loss                 | 0.0123      |', {'loss': 0.0123}),
    ('    optim/LR (group 0)=0.0003', {'learning_rate': 0.0003}),
    ('    throughput/device/TPS=12,345', {'tokens_per_s': 12345.0}),
    ('    - E2E (Tokens/sec/gpu): 812.31', {'tokens_per_s': 812.31}),
    ('\t Train loss/train/total: 2.3012', {'loss': 2.3012}),
    ('\t Train lr-DecoupledAdamW/group0: 0.0001', {'learning_rate': 0.0001}),
    ('\t Eval metrics/eval/LanguageCrossEntropy: 2.1', {'eval_loss': 2.1}),
    ('2025-01-01 12:00:00\tnode-0:0\tolmo.train:966\tINFO\t[step=120/739328,epoch=0]\n    optim/total_grad_norm=0.3\n    train/CrossEntropyLoss=2.812\n    train/Perplexity=16.6\n    throughput/device/tokens_per_second=12,345', {'step': 120, 'total_steps': 739328, 'loss': 2.812, 'grad_norm': 0.3, 'tokens_per_s': 12345.0}),
    ('========================= Step 12/500 =========================', {'step': 12, 'total_steps': 500}),
    ('  • Loss: 0.0123', {'loss': 0.0123}),
    ('[Eval] step 100: loss=0.5', {'step': 100, 'eval_loss': 0.5}),
    ('Test set: Average loss: 0.0512, Accuracy: 9812/10000 (98%)', {'eval_loss': 0.0512, 'loss': None}),
    ('step:1201/1770 train_time:120221ms step_avg:100.1ms', {'step': 1201, 'total_steps': 1770, 'step_time_s': 0.1001}),
    ('[Step 100] loss=0.50 | ppl=1.65 | throughput=12345 tokens/s', {'tokens_per_s': 12345.0}),
    ('step=100, train/loss=0.5, train/lr=1e-4, perf/tokens_per_sec=1234', {'loss': 0.5, 'tokens_per_s': 1234.0}),
    ('[1,  2000] loss: 2.173', {'epoch': 1.0, 'loss': 2.173}),
    ('loss: 1.231452  [12864/60000]', {'loss': 1.231452}),
    ('I0601 10:00:00.123456 140012 logging_writer.py:48] [120] learning_rate=0.000121, loss=4.312, steps_per_sec=3.2', {'step': 120, 'loss': 4.312, 'learning_rate': 0.000121}),
    ('Progress on:train 9.21kit/10.0kit rate:2.0it/s remaining:06:12 elapsed:1:12:02 postfix:loss=2.31', {'step': 9210, 'total_steps': 10000, 'loss': 2.31, 'step_time_s': 0.5}),
    ('INFO:__main__:Model saved to /mnt/ckpts/model.pt', {'checkpoint': 'model.pt'}),
    ('[3]\ttrain-rmse:1.23456\teval-rmse:1.34567', {'step': 3, 'loss': 1.23456, 'eval_loss': 1.34567}),
    ('[100]\tvalidation_0-logloss:0.41230\tvalidation_1-logloss:0.43112', {'step': 100, 'eval_loss': 0.4123}),
    ("[50]\ttraining's binary_logloss: 0.312\tvalid_1's binary_logloss: 0.345", {'step': 50, 'loss': 0.312, 'eval_loss': 0.345}),
    ('100:\tlearn: 0.3210000\ttest: 0.331\tbest: 0.331 (100)\ttotal: 1.2s\tremaining: 10.8s', {'step': 100, 'loss': 0.321, 'eval_loss': 0.331}),
    ('[2024-05-01 12:00:00] Ep. 3 : Up. 12000 : Sen. 1,234,567 : Cost 2.31234567 * 12,345,678 @ 12,345 after 123,456,789 : Time 123.45s : 98765.43 words/s : L.r. 3.0000e-04', {'step': 12000, 'epoch': 3.0, 'loss': 2.31234567, 'learning_rate': 0.0003, 'tokens_per_s': 98765.43}),
    ('2024-05-01 12:00:00,123 epoch 3 - iter 120/1204 - loss 0.123 - time (sec): 12.31 - samples/sec: 412.31 - lr: 0.000012', {'step': 120, 'loss': 0.123, 'samples_per_s': 412.31, 'step_time_s': None}),
    (' --> STEP: 120/1204 -- GLOBAL_STEP: 12000', {'step': 12000}),
    ('     | > loss: 0.31234  (0.33123)', {'loss': 0.31234}),
    ('INFO 2024-05-01 12:00:00 train.py:385 step:1K smpl:8K ep:13 epoch:0.31 loss:0.412 grdn:3.412 lr:1.0e-04 updt_s:0.412', {'step': 1000, 'epoch': 0.31, 'loss': 0.412}),
    ('                       Learning iteration 120/1500                       ', {'step': 120, 'total_steps': 1500}),
    ('global_step=12288, episodic_return=21.0', {'step': 12288}),
    ('Eval @ step 1200: loss=1.21 ppl=3.35', {'step': 1200, 'eval_loss': 1.21, 'loss': None}),
    ('Step 1.2k/10k | loss 2.31', {'step': 1200, 'total_steps': 10000, 'loss': 2.31}),
    (" 25%|██▌       | 100/400 [10:12<30:36,  6.12s/it]\x1b[A{'loss': '1.204', 'grad_norm': '0.55', 'learning_rate': '1.5e-05', 'ppl': '3.33', 'memory/max_active (GiB)': '61.2', 'memory/max_allocated (GiB)': '61.2', 'tokens/train_per_sec_per_gpu': '2311.4', 'epoch': '0.25'}", {'loss': 1.204, 'step': 100, 'total_steps': 400, 'tokens_per_s': 2311.4}),
    ('{"current_steps": 40, "total_steps": 1200, "loss": 0.8123, "lr": 4.9e-05, "epoch": 0.1, "percentage": 3.33, "elapsed_time": "0:01:10", "remaining_time": "0:33:50"}', {'step': 40, 'total_steps': 1200, 'loss': 0.8123}),
    ("{'eval_loss': 0.8012, 'eval_token_acc': 0.71, 'eval_runtime': 3.1, 'eval_samples_per_second': 31.0, 'eval_steps_per_second': 15.2, 'epoch': 0.35, 'global_step/max_steps': '50/140', 'percentage': '35.71%'}", {'eval_loss': 0.8012}),
    ("{'eval_loss': '0.9041', 'eval_runtime': '12.41', 'eval_rewards/chosen': '0.21', 'eval_rewards/margins': '0.5', 'eval_logps/rejected': '-212', 'epoch': '1'}", {'eval_loss': 0.9041, 'epoch': 1.0}),
    ('06/12/2025 10:11:12 - INFO - __main__ -   Total optimization steps = 4000', {'total_steps': 4000}),
    ('epoch: 1 step: 100, loss is 2.3056', {'step': 100, 'loss': 2.3056}),
    ('   \\\\   /|    Num examples = 51,760 | Num Epochs = 1 | Total steps = 60', {'total_steps': 60}),
    ('Unsloth: Saved LoRA adapter to /mnt/ckpts/checkpoint-60', {'checkpoint': 'checkpoint-60'}),
    ('Epoch 2:  13%|█▎        | 65/500 [00:19<02:09,  3.36it/s, v_num=12, train/loss=0.713, lr-AdamW=1.2e-5]', {'epoch_step': 65, 'loss': 0.713, 'learning_rate': 1.2e-05}),
    ('782/782 ━━━━━━━━━━━━━━━━━━━━ 31s 39ms/step - accuracy: 0.5112 - loss: 1.3512 - val_accuracy: 0.5912 - val_loss: 1.1512 - learning_rate: 0.0010', {'loss': 1.3512, 'eval_loss': 1.1512, 'learning_rate': 0.001}),
    ('[rank12]:  iteration      201/   95367 | consumed samples:  205824 | elapsed time per iteration (ms): 6100.1 | learning rate: 3.0E-05 | global batch size:  1024 | lm loss: 6.30E+00 | mtp_1 loss: 7.1E+00 | loss scale: 1.0 | grad norm: 1.2 |', {'step': 201, 'loss': 6.3, 'rank': 12}),
    ('[titan] 2025-06-09 10:11:12 - root - INFO - Saved the checkpoint in 12.31 seconds (or staging …).', {'checkpoint': ''}),
    ('[titan] - root - INFO - Trainer is initialized with local batch size 8, global batch size 64, gradient accumulation steps 1, sequence length 8192, total steps 1000 (warmup 200)', {'total_steps': 1000}),
    ('[NeMo I 2025-06-01 10:11:12 nemo_logging:393] Global Checkpoint Save : Rank: 0 : Iteration: 149 : Start time: 1748772672.1s : Save duration: 11.2s', {'checkpoint': 'iter_0000149'}),
    ("Epoch 0, global step 149: 'reduced_train_loss' reached 1.23300 (best 1.23300), saving model to '/mnt/ckpts/step=149.ckpt' as top 1", {'checkpoint': 'step=149'}),
    ('(TaskRunner pid=9321) step:7 - global_seqlen/min:81211 - actor/entropy:0.31 - critic/vf_loss:0.12 - actor/pg_loss:0.0041 - actor/pg_clipfrac:0.001 - actor/ppo_kl:0.0003 - actor/grad_norm:0.22 - actor/lr:1e-06 - training/global_step:7 - training/epoch:0 - critic/score/mean:0.4 - response_length/mean:412.0 - timing_s/gen:31.2 - timing_s/step:71.4 - perf/total_num_tokens:91231 - perf/throughput:1511.9', {'step': 7, 'loss': 0.0041, 'tokens_per_s': 1511.9, 'step_time_s': 71.4}),
    ('(WorkerDict pid=9911) INFO:2025-06-01 10:11:12,123:[Rank 0] Saved model to /mnt/ckpts/global_step_100/actor/model_world_size_8_rank_0.pt', {'checkpoint': 'global_step_100'}),
    ('(TaskRunner pid=9321) Total training steps: 1050', {'total_steps': 1050}),
    ('[2025-06-01 10:11:12,345] [INFO] [torch_checkpoint_engine.py:23:save] [Torch] Saving /mnt/ckpts/global_step500/mp_rank_00_model_states.pt...', {'checkpoint': 'global_step500'}),
    ('Step 12 | loss:1.1174635887145996 lr:2e-05 tokens_per_second_per_gpu:542.9 peak_memory_active:16.1 peak_memory_alloc:16.1 peak_memory_reserved:17.5', {'step': 12, 'loss': 1.1174635887, 'learning_rate': 2e-05, 'tokens_per_s': 542.9}),
    ('INFO:torchtune.utils._logging:Model checkpoint of size 4.97 GiB saved to /mnt/ckpts/epoch_0/ft-model-00001-of-00004.safetensors', {'checkpoint': 'epoch_0'}),
    ("✨ Global step 12: {'policy_loss': 0.0123, 'reward': 0.51}", {'step': 12, 'loss': 0.0123}),
    ('| epoch 001:    450 / 1891 loss=11.521, nll_loss=10.881, ppl=1886.05, wps=52922, ups=0.5, wpb=104928, bsz=5325, num_updates=445, lr=8.90889e-05, gnorm=1.543, clip=0%', {'step': 445, 'loss': 11.521}),
    ("| epoch 081 | valid on 'valid' subset | loss 6.846 | nll_loss 4.610 | ppl 24.41 | num_updates 10092 | best_loss 6.84088", {'eval_loss': 6.846, 'step': 10092, 'loss': None}),
    ("| epoch 008 | valid on 'valid' subset | valid_loss 6.43844 | valid_nll_loss 5.23288 | valid_ppl 37.61 | num_updates 21896 | best 6.43844", {'eval_loss': 6.43844, 'loss': None}),
    ("2025-06-01 10:11:12 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 8.1 | nll_loss 6.88 | ppl 118.06 | wps 210000 | num_updates 600", {'eval_loss': 8.1, 'loss': None}),
    ('2025-06-01 10:11:12 | INFO | valid | {"epoch": 1, "valid_loss": "8.114", "valid_nll_loss": "6.883", "valid_ppl": "118.06", "valid_num_updates": "600"}', {'eval_loss': 8.114, 'loss': None}),
    ('2025-06-01T10:11:12Z INFO trainer: step=1200/5000 epoch=0.24 loss=0.8312 lr=1.99e-05 grad_norm=0.612 tokens/s=81233 eta=1:02:11', {'step': 1200, 'total_steps': 5000, 'loss': 0.8312, 'tokens_per_s': 81233.0}),
    ('[1200/5000] loss: 0.8312 lr: 2e-5', {'step': 1200, 'total_steps': 5000, 'loss': 0.8312}),
    ('{"ts": 1748772672.1, "event": "train", "step": 40, "data": {"loss": 1.21, "lr": 1e-5}}', {'step': 40, 'loss': 1.21}),
    ('INFO {"train/loss": 1.21, "train/global_step": 40, "_runtime": 12.1}', {'loss': 1.21, 'step': 40}),
    (' samples/sec: 12.331 | iteration      100/  320000 | elapsed time per iteration (ms): 1300.1 | learning rate: 6.000E-04 | approx flops per GPU: 61.2TFLOPS | lm_loss: 5.112E+00 | number of skipped iterations:   0 | number of nan iterations:   0 |', {'step': 100, 'total_steps': 320000, 'loss': 5.112}),
    ('2025-06-01 10:11:12,123 INFO [train.py:1012] (0/8) Epoch 1, batch 50, loss[loss=0.6112, simple_loss=1.112, pruned_loss=0.7, over 5000.00 frames. ], tot_loss[loss=0.8112, over 100000.00 frames. ], batch size: 40, lr: 2.01e-03', {'loss': 0.6112}),
    ('my_lora:   5%|▌         | 100/2000 [02:01<38:11,  1.21s/it, lr: 1.0e-04 loss: 3.12e-01]', {'step': 100, 'loss': 0.312}),
    ('INFO:tensorflow:loss = 0.5112, step = 300 (24.112 sec)', {'step': 300, 'loss': 0.5112}),
    ('[EVAL] step 300 loss 1.1112', {'eval_loss': 1.1112, 'step': 300, 'loss': None}),
    ('Evaluation at step 300: loss=1.1112, ppl=3.03', {'eval_loss': 1.1112, 'step': 300, 'loss': None}),
    ('validation | step 300 | loss 1.1112', {'eval_loss': 1.1112, 'step': 300, 'loss': None}),
    ('loss: nan at step 412', {'step': 412}),
    ('WARNING: step 412 loss is nan, skipping', {'step': 412}),
    ('[host] 2025-06-01 10:11:12,123 (trainer:732) INFO: 1epoch:train:1-100batch: iter_time=0.112, forward_time=0.212, loss=51.212, acc=0.312, optim0_lr0=1.112e-05, train_time=1.112', {'epoch': 1.0, 'loss': 51.212, 'learning_rate': 1.112e-05}),
    ('eval metrics after step: 120, loss=3.5, total_weights=524288.0', {'step': 120, 'eval_loss': 3.5}),
    ('I0401 10:12:22.123456 140001 train.py:357] eval epoch: 3, loss: 2.3, accuracy: 44.1', {'epoch': 3.0, 'eval_loss': 2.3}),
    ('2025-02-01 10:21:12,123 INFO [train.py:53] (0/4) Epoch 3, validation: loss=0.19, simple_loss=0.25, over 94.00 frames.', {'epoch': 3.0, 'eval_loss': 0.19}),
    ('[10:21:12] INFO     fairseq2 - Validation Metrics (step 500) - Cross-Entropy (CE) Loss: 1.1 | Perplexity: 3.0', {'step': 500, 'eval_loss': 1.1}),
    ('2025-02-01 10:22:12,123 DEV : loss 0.112 - f1-score (micro avg)  0.9', {'eval_loss': 0.112}),
    ('dev loss: 2.4, dev ppl: 11.0', {'eval_loss': 2.4}),
    ('  eval_loss               =     0.8712', {'eval_loss': 0.8712}),
    ('2025-10-11 10:12:12 [info     ] eval.done                 epoch=1 global_step=300 loss=0.9121', {'step': 300, 'eval_loss': 0.9121, 'loss': None}),
    ('>>> validation: loss=2.212 ppl=9.13', {'eval_loss': 2.212, 'loss': None}),
    ('Progress:  41.2% words/sec/thread:  121212 lr:  0.029412 avg.loss:  2.121212 ETA:   0h 0m31s', {'loss': 2.121212, 'learning_rate': 0.029412, 'tokens_per_s': 121212.0}),
    ('| INFO | Train Epoch: 3 [ 409600/10968539 (4%)] Data (t): 0.012 LR: 0.000412 Loss: 2.1 (2.2)', {'loss': 2.1, 'epoch': 3.0, 'step': None}),
    ('Train Loss: 0.412 | Val. Loss: 0.512', {'loss': 0.412, 'eval_loss': 0.512}),
    ('\tTrain Loss: 4.121 | Train PPL:  61.621', {'loss': 4.121}),
    ('Epoch 1 | iter 1600 step 100 | loss train: 1.112, val: 1.201 | iter time: 401.11 ms (step)', {'step': 100, 'loss': 1.112, 'eval_loss': 1.201}),
    ('2025-10-11 10:11:12,121 [steps/nnet3/chain/train.py:529 - train - INFO ] Iter: 31/412   Jobs: 4   Epoch: 0.41/4.0 (10.2% complete)   lr: 0.001812    ', {'step': 31, 'total_steps': 412, 'epoch': 0.41, 'learning_rate': 0.001812}),
    ('fps step: 41212 fps step and policy inference: 39121 fps total: 31212 epoch: 41/1000 frames: 2621440', {'epoch': 41.0, 'step': None}),
    ('[train] ep 3 it 120/800 | L=0.8121 | lr=3.0e-04 | 812 img/s', {'step': 120, 'learning_rate': 3.0e-04}),
    ('INFO ts/train.py:251 Checkpoint policy after step 20000', {'checkpoint': 'step-20000'}),
    ('{"level": "INFO", "message": "checkpoint saved", "path": "s3://b/run/step_1200", "step": 1200}', {'checkpoint': 'step_1200', 'step': 1200}),
    ('\t Val. Loss: 0.912 |  Val. PPL:   2.489', {'eval_loss': 0.912}),
    ('Test loss: 0.5621', {'eval_loss': 0.5621}),
    ('Step... (1200/5000 | Loss: 1.2, Learning Rate: 0.0001)', {'step': 1200, 'total_steps': 5000, 'loss': 1.2, 'learning_rate': 0.0001}),
    ('After 1,200 steps: train_loss 2.3, val_loss 2.4', {'step': 1200, 'loss': 2.3, 'eval_loss': 2.4}),
    ('[train][rank 0] 1200/5000 | loss=2.3 | lr=3.0e-04 | tok/s/gpu=5121', {'step': 1200, 'total_steps': 5000, 'loss': 2.3, 'tokens_per_s': 5121.0}),
    ('[10:11:12] it 1200/5000 (24.0%) lr=3.0e-04 1.21s/it', {'step': 1200, 'total_steps': 5000, 'learning_rate': 0.0003}),
    ('Epoch 1/10 Step 31/156 Train step 31/1560 done.', {'step': 31, 'total_steps': 1560, 'epoch_step': 31}),
    ('INFO 2025-06-11 ot_train.py:351 step:2K smpl:16K ep:41 epch:0.81 loss:0.121 grdn:1.2 lr:1e-05', {'step': 2000, 'epoch': 0.81, 'loss': 0.121, 'grad_norm': 1.2}),
    ('2023-02-01 10:11:12,123 DEBUG TRAIN Batch 3/1200 loss 12.3 loss_att 11.0 lr 0.0009 rank 0', {'step': 1200, 'epoch': 3.0, 'loss': 12.3, 'learning_rate': 0.0009}),
    ('\t[step=210/100000,epoch=1,eta=2 days, 3:10:11]', {'step': 210, 'total_steps': 100000, 'epoch': 1.0}),
    ('2025-02-01 10:11:12,123 - INFO - allennlp.training.trainer - Epoch 3/39', {'epoch': 2.0, 'total_epochs': 39.0}),
    ("INFO - __main__ - epoch 1: {'accuracy': 0.84, 'f1': 0.88}", {'epoch': 1.0}),
    ('Step 02000 | CORE metric: 0.0812', {'step': 2000}),
    ("Epoch 3, global step 4000: 'val_wer' reached 0.12110 (best 0.12110), saving model to '/x/asr.ckpt' as top 3", {'step': 4000, 'epoch': 3.0}),
    ('[2025-02-01 10:21:12] [valid] Ep. 3 : Up. 12000 : cross-entropy : 41.2 : new best', {'step': 12000, 'epoch': 3.0, 'eval_loss': 41.2}),
    ("| trainer:train:231 - {'final_loss': 0.0123, 'policy_loss': 0.0111, 'raw_grad_norm': 0.231}", {'loss': 0.0123, 'grad_norm': 0.231}),
    ('train_utils.py: 271: Train Epoch: [3][ 120/ 910] | Mem (GB): 31.00 | Losses/train_all_loss: 1.21e+00 (1.31e+00)', {'epoch_step': 120, 'loss': 1.21}),
    ('     | > grad_norm: 1.23110  (1.31121)', {'grad_norm': 1.2311}),
    ('{"event": "train_step", "data": {"global_step": 12, "train": {"loss": 2.3}, "optim": {"lr": 0.0003}}}', {'step': 12, 'loss': 2.3, 'learning_rate': 0.0003}),
    ('{"step": 12, "train": {"loss": 2.3}, "eval": {"loss": 2.4}}', {'step': 12, 'loss': 2.3, 'eval_loss': 2.4}),
    ('{"train/loss": 2.29, "train/global_step": 1230, "_runtime": 121, "_step": 123}', {'step': 1230, 'loss': 2.29}),
    ('Training Batches Processed:   8%|▊         | 40/500 [51:12<9:48:01, 76.7s/it]', {'step': 40, 'total_steps': 500}),
    ('[2025-02-01 10:21:12] Saving model weights and runtime parameters to model.npz', {'checkpoint': ''}),
    ('save checkpoint to /out/models/model_epoch_50.pth', {'checkpoint': 'model_epoch_50.pth'}),
    ('Epoch [12/100] | Train Loss: 0.4121 | Val Loss: 0.5121', {'epoch': 12.0, 'loss': 0.4121, 'eval_loss': 0.5121}),
    ('*** eval metrics at epoch 3: loss=2.41 acc=0.81 ***', {'epoch': 3.0, 'eval_loss': 2.41}),
    ('INFO:tensorflow:Saving dict for global step 1200: accuracy = 0.81, global_step = 1200, loss = 0.5', {'step': 1200, 'eval_loss': 0.5}),
    ('(1200/5000) train loss 2.312, 0.81 s/step', {'step': 1200, 'total_steps': 5000, 'loss': 2.312}),
    ('step: 1200, loss: Array(2.3121, dtype=float32), lr: Array(0.0003, dtype=float32)', {'step': 1200, 'loss': 2.3121, 'learning_rate': 0.0003}),
    ('train Loss: 0.4121 Acc: 0.8121', {'loss': 0.4121}),
    ('Checkpoint successfully created at: Checkpoint(filesystem=local, path=/out/checkpoint_000003)', {'checkpoint': 'checkpoint_000003'}),
    ('--- Epoch 3 of 10 ---', {'epoch': 2.0, 'total_epochs': 10.0}),
    ('Progress: 24.0% (1200/5000) loss=2.31 lr=0.0003', {'step': 1200, 'total_steps': 5000, 'loss': 2.31}),
    ('24% | 1200/5000 | loss 2.31', {'step': 1200, 'total_steps': 5000, 'loss': 2.31}),
    ('Train Epoch: 3 [ 1280/9039 (1%)] Batch (t): 0.8, 1262.1/s, 157.8/s/gpu LR: 0.0004 Loss: 2.31 (2.41)', {'loss': 2.31, 'learning_rate': 0.0004}),
    ('Epoch 3 complete! Average loss: 0.4121', {'epoch': 3.0, 'loss': 0.4121}),
    ('Epoch... (3/10 | Loss: 0.4121 | Eval Loss: 0.5121)', {'loss': 0.4121, 'eval_loss': 0.5121}),
    ('[INFO:t] Epoch[0] Batch [2900]   Speed: 186.9 samples/sec 8556.4 tokens/sec 1.59 updates/sec   ppl=38.9', {'step': 2900, 'tokens_per_s': 8556.4, 'samples_per_s': 186.9}),
    ("2020-03-01-INFO: iter: 120, lr: 0.000121, 'loss_cls': '0.69', 'loss': '1.51', eta: 1:12:12, ips: 12.1 images/sec", {'step': 120, 'loss': 1.51}),
    ('2024-03-01 10:11:12 INFO     Training average loss at step 1200: 0.412', {'step': 1200, 'loss': 0.412}),
    ('validation loss at step 100: 2.1', {'step': 100, 'eval_loss': 2.1}),
    ('I1109 10:34:34.281081  9709 sgd_solver.cpp:105] Iteration 360, lr = 7.8e-07', {'step': 360, 'learning_rate': 7.8e-07}),
    ('20-08-15 15:50:30 INFO: [My_ES..][epoch:207, iter:  20,100, lr:(1.000e-04,)] [eta: 1 day] l_g_pix: 3.1e-04', {'step': 20100, 'epoch': 207.0, 'learning_rate': 1e-4}),
    ('INFO:44k:Losses: [2.4, 2.1, 9.1], step: 1200, lr: 9.996e-05, reference_loss: 35.8', {'step': 1200, 'learning_rate': 9.996e-05}),
    ('INFO:mymodel:Train Epoch: 478 [92%]', {'epoch': 478.0}),
    ('Epoch: 04 | Time: 0m 12s', {'epoch': 4.0}),
    ('[Epoch 604] [D loss: 0.0004, acc: 100%] [G loss: 1381.4]', {'epoch': 604.0, 'loss': None}),
    ('[INFO] 3DBall. Step: 24000. Time Elapsed: 41.331 s. Mean Reward: 1.612. Training.', {'step': 24000}),
    ('[3/25][120/1583]\tLoss_D: 0.41\tLoss_G: 2.12\tD(x): 0.81', {'epoch_step': 120, 'epoch_steps': 1583, 'total_epochs': 25}),
    (' | Epoch: [1][2/5004]    Time 0.720  Data 0.003  Err 7.05', {'epoch_step': 2, 'loss': None}),
    ('Epoch  2,   550/  725; acc:   0.10; ppl:  11.85; 5187 src tok/s', {'epoch_step': 550, 'whole_epochs': 1}),
    ('120/21150 (epoch 0.283), train_loss = 3.12, grad/param norm = 2.1e-01', {'step': 120, 'total_steps': 21150, 'loss': 3.12}),
    ('x INFO ] Iter: 21/59   Jobs: 1   Epoch: 7.00/20.0 (35.0% complete)   lr: 0.000447', {'step': 21, 'epoch': 7.0}),
    ('(trainer:281) INFO: 1epoch results: [train] loss=60.1, loss_att=57.4, lr_0=1.4e-05, [valid] loss=41.3, acc=0.3', {'epoch': 1.0, 'loss': 60.1, 'eval_loss': 41.3}),
    ('     91300 iter, 7 epoch / 20 epochs', {'step': 91300, 'epoch': 7.0}),
    (' 1003: 1.204411, 1.318833 avg loss, 0.001300 rate, 4.110229 seconds, 64192 images', {'step': 1003, 'loss': 1.318833, 'learning_rate': 0.0013}),
    ('Train loss 120 0.41 Grad Norm 0.81 1.21s/it', {'step': 120, 'loss': 0.41, 'grad_norm': 0.81}),
    ('Validation loss 1000:  0.41  ', {'step': 1000, 'eval_loss': 0.41}),
    ('INFO     Validation step 700 -- Loss: 11.201, MLM: 10.501 -- It/s: 4.10', {'step': 700, 'eval_loss': 11.201, 'loss': None}),
    ('Testing at - 1000/2000 of epoch 0, loss 0.516, accuracy 75.8 %', {'eval_loss': 0.516, 'loss': None}),
    ('Epoch 0 | Validation | Elapsed Time: 0:00:31 | Steps: 101 | Loss: 52.01 | Dataset: dev.csv', {'epoch': 0.0, 'eval_loss': 52.01, 'step': None}),
    ('{"train_loss_itc": "3.2", "train_loss_mlm": "2.5", "train_lr": "0.00007", "epoch": 1}', {'epoch': 1.0, 'learning_rate': 7e-05, 'loss': None}),
    ('  training loss:\t\t0.412', {'loss': 0.412}),
    ('─────────────── Step 381545 ───────────────', {'step': 381545}),
    ('\t Train l2_norm/grad/global: 1.21', {'grad_norm': 1.21}),
    ('iter 120 step 30 | loss 1.2, iter time: 412.1 ms (step)', {'step': 30, 'step_time_s': 0.4121}),
    ('Saving weights to backup//yolo_1000.weights', {'checkpoint': ...}),
    ('I Saved new best validating model with loss 52.0 to: /ckpt/best_dev-1201', {'checkpoint': ...}),
    ('I0425 10:13:04 solver.cpp:130] Snapshotting to x_train_iter_200', {'checkpoint': ...}),
    ('Validation loss decreased (38.3 --> 31.1).  Saving model ...', {'checkpoint': '', 'eval_loss': None}),
    ('Test Error: Avg loss: 0.0629', {'eval_loss': 0.0629}),
    (' Accuracy: 64.8%, Avg loss: 1.08', {'eval_loss': 1.08}),
    ('LOSS train 0.41 valid 0.51', {'loss': 0.41, 'eval_loss': 0.51}),
    ('  Average training loss: 0.41', {'loss': 0.41}),
    ('======== Epoch 3 / 4 ========', {'epoch': 2.0, 'total_epochs': 4.0}),
    ('  Batch    40  of  1,200.    Elapsed: 0:00:12.', {'step': 40, 'total_steps': 1200}),
    ('epoch 3 iter 1200: train loss 0.41. lr 5.9e-04: 100%|###| 1201/1201 [02:11<00:00, 9.11it/s]', {'loss': 0.41, 'learning_rate': 5.9e-4, 'epoch_step': 1201}),
    ('INFO:tensorflow:Evaluation result for step 1000: loss = 4.12 ; perplexity = 61.2', {'step': 1000, 'eval_loss': 4.12, 'loss': None}),
    ('[12]#011train-rmse:0.41#011validation-rmse:0.51', {'step': 12, 'loss': 0.41, 'eval_loss': 0.51}),
    ('Epoch: [0]  [1100/1504]  lr: 0.000028  closs: 1.10 (1.15)', {'epoch_step': 1100, 'loss': 1.1}),
    ("{'loss': nan, 'grad_norm': nan, 'learning_rate': 0.0, 'epoch': 0.5}", {'loss': NAN}),
    ("{'loss': inf, 'epoch': 0.5}", {'loss': INF}),
    ('step=40 loss=nan', {'loss': NAN}),
    ('step 40 | loss: NaN | lr: 1e-4', {'loss': NAN}),
    ('{"step": 40, "loss": NaN}', {'loss': NAN}),
    ('iteration       40/    9000 | lm loss: NAN | grad norm: nan |', {'loss': NAN}),
    ('[titan] step: 40  loss:  nan  memory: 61.20GiB(77%)  tps: 1,234', {'loss': NAN}),
    ('step=40 loss=-inf', {'loss': -INF}),
    (' 39160/50000: episode: 569, duration: 0.073s, episode steps: 13, mean reward: 1.000 [1.0, 1.0], loss: 78.8', {'step': 39160, 'total_steps': 50000, 'loss': 78.8}),
    ('Saving model (epoch = 3, loss = 0.7121)', {'checkpoint': '', 'epoch': 3.0, 'loss': None}),
    ('Iter 120, Minibatch Loss= 0.412, Training Accuracy= 0.812', {'step': 120, 'loss': 0.412}),
    ('[Epoch 3 / Test]: Loss = 0.512 | Accuracy = 0.71', {'epoch': 3.0, 'eval_loss': 0.512, 'loss': None}),
    (' validation results at iteration 1000 | lm_loss value: 5.12E+00 | lm_loss_ppl value: 1.6E+02 | ', {'step': 1000, 'eval_loss': 5.12}),
    ('Epoch:[1/2](120/11040), loss: 4.12, lr: 0.0005, epoch_time: 121.0min', {'epoch_step': 120, 'epoch_steps': 11040, 'loss': 4.12}),
    ('phase: val, epoch: 3, loss: 0.41', {'epoch': 3.0, 'eval_loss': 0.41, 'loss': None}),
    ('Epoch 3 | dev: loss 0.41 acc 0.8', {'eval_loss': 0.41, 'loss': None}),
    ('Results on val: loss=0.41 step=1200', {'step': 1200, 'eval_loss': 0.41, 'loss': None}),
    ("validation results: {'loss': 0.41, 'acc': 0.8}", {'eval_loss': 0.41, 'loss': None}),
    ('100/9000 = 1.1%, SPS: 2.1, ETA: 5 days, 12:01:11 - loss: 4.12', {'step': 100, 'total_steps': 9000, 'loss': 4.12}),
    ('rank-id:0:2021-01-08 19:22:59,208-Iter:460 Rank:207.4 it/sec [0][loss]:0.01', {'step': 460, 'loss': 0.01}),
    ('[100 | 234.56] loss=3.21 avg=3.33', {'step': 100, 'loss': 3.21}),
    ('[Epoch 4 3000/9000][Iteration 172] Throughput is 21.5 records/second. Loss is 1.73. Current learning rate is 0.07.', {'step': 172, 'loss': 1.73, 'learning_rate': 0.07}),
    ('validation loss at iteration 500 | loss: 2.4E-01 | PPL: 1.2E+00', {'step': 500, 'eval_loss': 0.24, 'loss': None}),
    ('epoch：3，loss：0.52，acc：0.81', {'epoch': 3.0, 'loss': 0.52}),
    ('loss:   0.12 test_accuracy: 97.12%: 100%|███| 70/70 [00:06<00:00, 11.12it/s]', {'step': 70, 'loss': 0.12}),
    ('Step    100: train CrossEntropyLoss |  2.31', {'step': 100, 'loss': 2.31}),
    ('Step    100: eval  CrossEntropyLoss |  2.41', {'step': 100, 'eval_loss': 2.41, 'loss': None}),
    ('batch 10, epoch 0/8 global average objf: 1.8 over 3270.0 frames, time waiting for batch 0.06s', {'epoch': 0.0, 'loss': 1.8}),
    ('[2024-11-12 17:50:28,933][agent.train][INFO] - 138: train loss   0.15 | t: 61.64', {'loss': 0.15}),
    ('Epoch 4, Iter 1200, D: 0.4012, G: 3.0101', {'epoch': 4.0, 'step': 1200}),
    ('2021-01-11 10:11:12,120 - INFO - x.training - EPOCH 1', {'epoch': 1.0}),
    ('2023-06-01 10:11:12.101120: Epoch 12', {'epoch': 12.0}),
    ('Train Epoch 12', {'epoch': 12.0}),
    ('validation: epoch 0, iter 20, top_1: 0.551, samples/s: 701.1', {'step': None, 'samples_per_s': None}),
    ('[val] step 14 | epoch 0 | loss 0.71 | lr 1.00e-05', {'step': 14, 'eval_loss': 0.71, 'learning_rate': 1e-5}),
    ('train | step:   2000 | steps/sec:    2.2 | output:', {'step': 2000}),
    ("eval | step:   2000 | eval time: 12.3 sec | output: {'validation_loss': 2.21}", {'step': 2000, 'eval_loss': 2.21}),
    ('[proc 0][Train](1000/24000) average pos_loss: 0.51', {'step': 1000, 'total_steps': 24000, 'loss': None}),
    ('train.py: [8/100], train_loss: 0.58, time: 3.58, lr: 0.0001', {'step': None, 'loss': 0.58, 'learning_rate': 1e-4}),
    ('loss 0.381, train acc 0.861, test acc 0.842', {'loss': 0.381}),
    ('[demucs.solver][INFO] - Valid Summary | Epoch 1 | Loss=0.1312', {'epoch': 1.0, 'eval_loss': 0.1312, 'loss': None}),
    ('[flashy.solver][INFO] - Train | Epoch 1 | 120/2000 | 1.21 it/sec | ce 5.121 | ppl 212.12', {'epoch_step': 120, 'loss': 5.121}),
    ('Avg loss for epoch 12: 0.412', {'epoch': 12.0, 'loss': 0.412}),
    ('epoch 12 tr_loss 0.41 va_loss 0.51', {'loss': 0.41, 'eval_loss': 0.51}),
    ('| Adam | epoch: 001 | loss: 0.41211 - acc: 0.8121 -- iter: 07680/50000', {'epoch': 1.0, 'step': None, 'loss': 0.41211}),
    ('Averaged stats: lr: 0.0001  loss: 3.12 (3.41)  weight_decay: 0.05 (0.05)', {'loss': 3.12, 'learning_rate': 1e-4}),
    ('Epoch 1 of 500 took 12.121s', {'epoch': 1.0}),
    ('End of epoch 1 / 200 \t Time Taken: 121 sec', {'epoch': 1.0}),
    ('====> Epoch: 12', {'epoch': 12.0}),
    ('********** Iteration 12 ************', {'step': 12}),
    ('Cost after iteration 1200: 0.412', {'step': 1200, 'loss': 0.412}),
    ('x.ScoreIterationListener - Score at iteration 120 is 0.412', {'step': 120, 'loss': 0.412}),
    (' - 12s - loss: 0.41 - acc: 0.81 - val_loss: 0.31', {'loss': 0.41, 'eval_loss': 0.31}),
    ("[LightGBM] [Info] [12]\ttraining's rmse: 0.41\tvalid_set's rmse: 0.51", {'step': 12, 'loss': 0.41, 'eval_loss': 0.51}),
    ('Valid metrics: Loss: 0.3121 - Acc: 0.9012', {'eval_loss': 0.3121, 'loss': None}),
    ('Episode: 120, total reward: 41.0, loss: 0.412', {'loss': 0.412, 'epoch': None}),
    ('saving the latest model (epoch 1, total_iters 5000)', {'checkpoint': ''}),
    ('opt_step 120 loss 2.12', {'step': 120, 'loss': 2.12}),
    ('minibatch 120/938 loss 2.12', {'step': 120, 'total_steps': 938, 'loss': 2.12}),
    ('Epoch 3 - Saving best model', {'checkpoint': ''}),
    ('Epoch 3 - loss: 0.41 - val: 0.51', {'epoch': 3.0, 'loss': 0.41, 'eval_loss': None}),
    ('Testing: epoch 3 loss 0.51', {'epoch': 3.0, 'eval_loss': 0.51, 'loss': None}),
    (' 12%|# | 120/1000 [02:01<14:51,  1.01s/it] loss: 0.412', {'step': 120, 'loss': 0.412}),
    ('Loss: 0.4121: 120it [00:12,  9.12it/s]', {'step': 120, 'loss': 0.4121}),
    (' [===>] Step: 12ms | Tot: 1s212ms | Loss: 0.412 | Acc: 81.212% (8121/10000) 391/391', {'loss': 0.412}),
    ('Saving EMA model to /x/ema_120.pt', {'checkpoint': ...}),
    ('Epoch 3 | Training snapshot saved at snapshot.pt', {'checkpoint': ...}),
    ('Model saved.', {'checkpoint': ''}),
    ('Saving at step 250', {'checkpoint': 'step-250'}),
    ('Saving checkpoints...', {'checkpoint': ''}),
    ('Saved the agent to results/x/5000_checkpoint', {'checkpoint': ...}),
    ('=== [logger_r0] - METRICS STEP 2 ===', {'step': 2}),
    ('Epoch 4: loss = mx.array(0.41, dtype=float32)', {'epoch': 4.0, 'loss': 0.41}),
    ('3211ms 54us/step - acc=0.912 loss=0.41 val_loss=0.51', {'loss': 0.41, 'eval_loss': 0.51}),
    ('   1 train loss  0.41 test acc: 91.21%', {'loss': 0.41}),
    ('Epoch 4 in 12.31s (4.1 batches/s): avg sample loss 0.41', {'epoch': 4.0, 'loss': 0.41}),
    ('Train Epoch 4 [lr=1.0e-03] loss=0.41: 42%|#1 | 394/938 [00:05<00:07, 74.9it/s]', {'epoch_step': 394, 'loss': 0.41}),
    ('Epoch 3 done. Loss: 0.41 | Time: 3s', {'epoch': 3.0, 'loss': 0.41, 'step_time_s': None}),
    ('Loss (step 120): 0.41', {'step': 120, 'loss': 0.41}),
    ('Epoch 3 val | loss 0.5 | acc 0.9', {'epoch': 3.0, 'loss': None, 'eval_loss': 0.5}),
    ('INFO evaluator: step 120 loss 0.5', {'step': 120, 'loss': None, 'eval_loss': 0.5}),
    ('INFO:__main__:Final eval: step 120 loss 0.5', {'step': 120, 'loss': None, 'eval_loss': 0.5}),
    ('holdout: step 120 loss 0.5', {'step': 120, 'loss': None, 'eval_loss': 0.5}),
    ('Epochs: 30%|## | 3/10 [00:12<00:28, 4.1s/it, loss=0.3]', {'step': None, 'epoch': 3.0, 'total_epochs': 10.0, 'loss': 0.3}),
    ('Train [3/10]: 42%|#1 | 394/938 [00:05<00:07, 74.9it/s, loss=0.3]', {'epoch_step': 394, 'whole_epochs': 2}),
    ('  train: loss 0.41 acc 0.9', {'loss': 0.41}),
    ('Valid - loss: 0.51, acc: 0.8', {'loss': None, 'eval_loss': 0.51}),
    ('iterations: 100, training error: 0.0512', {'step': 100}),
    ("{'split': 'val', 'loss': 0.41, 'step': 1200}", {'step': 1200, 'eval_loss': 0.41, 'loss': None}),
]
"""Lines with some of what is read in them: None must not be read, an ellipsis stands for any value."""

OTHER_LINES: list[str] = [
    'Validation DataLoader 0:  50%|█████     | 10/20 [00:02<00:02,  4.41it/s]',
    'Step 1/12 : FROM python:3.11',
    'TrainingArguments(learning_rate=2e-05, max_steps=9000, logging_steps=10, save_steps=500, loss=ce)',
    '{"max_steps": 9000, "learning_rate": 2e-05, "epochs": 3}',
    'loss: 0.5',
    'Resuming from saved checkpoint /mnt/ckpts/checkpoint-4000',
    'Failed to save checkpoint to /mnt/ckpts/checkpoint-500',
    'At step 3 the loss 2.5 was still high, so we lowered the learning rate',
    'in epoch 2 loss 0.5 is normal',
    'Step 3/10: installing dependencies, loss of 2 connections',
    'lr=2e-05, step=500, gamma=0.1, loss_weight=1.0',
    'Namespace(step=3, loss=2.0, lr=0.1)',
    "config: {'step': 3, 'loss': 'mse', 'lr': 0.1}",
    "{'loss_type': 'dapo', 'max_steps': 100, 'loss': 'sigmoid'}",
    '{"trainer": {"max_steps": 1000, "loss": "ce"}, "lr": 0.1}',
    'export STEP=3 LOSS=2.0',
    '  File "/app/train.py", line 120, in step 3 loss=2.0',
    "    assert loss < 100, f'step {step} loss {loss}'",
    'Computing reference log probs: 10%|█         | 10/100 [00:10<01:30,  1.01s/it]',
    'Waiting for step 3/10 to finish; loss: 1',
    'best loss 0.41 at step 1200',
    'Loaded checkpoint at step 1200 with loss 0.83',
    '    val_loss = 0.0  # no batch yet',
    'Backup epoch: 3/10',
    '{"status": "ok", "loss": 0.1, "step": "checkout", "latency_ms": 2383}',
    '{"level": "WARN", "msg": "packet loss", "loss": 7.15, "iface": "eth0", "step": 515}',
    'Here is an example: `step=3223 loss=2.9` means that it learns',
    'We report test loss 4.468 in Table 4.',
    'Iteration   120: objective 1.2121e+03, gradient norm 3.1e-02, step size 0.5',
    '    fabric.print(f"Saving checkpoint to {str(path)!r}")',
    'Saving converted checkpoint to checkpoints/microsoft/phi-2',
    'make_experience:  25%|██▌       | 2/8 [00:04<00:12,  2.11s/it]',
    '    step = 3; loss = 2.0',
    '[rank3]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3384, step 3, loss 2.0',
    'Max steps: 300, eval every 50 steps, loss: cross entropy',
    'TokenizerWarning: 12 tokens/s dropped at step 3',
    'Losses: 2 nodes lost at step 3',
    'Training loss per epoch: 0.412',
    'Metric val_loss improved by 0.012 >= min_delta = 0.0. New best score: 0.402',
    '[2025-06-01 10:11:12,345] [INFO] [logging.py:107:log_dist] [Rank 0] [Torch] Checkpoint global_step500 is about to be saved!',
    'Step 00250 | Validation bpb: 1.1012',
    '2025-02-01 10:15:12,123 DEBUG CV Batch 3/400 loss 9.811 loss_att 8.1 history loss 9.711 rank 0',
    'Running loglikelihood requests: 100%|██████████| 40168/40168 [05:11<00:00, 128.1it/s]',
    '[2025-06-11 10:21:12] ppcls INFO: [Eval][Epoch 3][Iter: 0/49]CELoss: 1.91, loss: 1.91, batch_cost: 0.4s',
    'Step 2: loss = 5 - 3 = 2',
    '[prompt] epoch 3 loss 0.5 [/prompt]',
    '[2025-06-11 10:21:12 swin_base](main.py 301): INFO Test: [40/98]\tTime 0.2 (0.2)\tLoss 1.1 (1.2)\tMem 14121MB',
    'Sample 3: "the epoch 4 loss: 0.3 was great"',
    'Best checkpoint: step 4000 (val_loss=2.31)',
    '100%|██████████| 170498071/170498071 [00:13<00:00, 12978384.51it/s]',
    'Capturing CUDA graph shapes:  50%|█████     | 10/20 [00:02<00:02,  4.41it/s]',
    'Sanity Checking DataLoader 0: 100%|██████████| 2/2 [00:00<00:00,  5.10it/s]',
    "Namespace(steps=1000, lr=0.001, batch=32, grad_norm=1.0, loss='mse')",
    '{"learning_rate": 2e-05, "max_steps": 9000, "step": 10, "lr": 0.1}',
    'lr_scheduler: {type: step, step: 10, lr: 0.001}',
    'Epoch 3/10 started',
    'Rollout:  50%|█████     | 5/10 [00:11<00:11,  2.12s/it]',
    '  train_iters ............................. 9000',
    'Scheduler: step 100 lr 0.0001',
    'Progress on:eval 12it/81it rate:4.1it/s remaining:00:17 elapsed:00:03 postfix:loss=2.4',
    "I0601 10:00:00.123456 140012 logging_writer.py:64] [0] Got texts: {'config': 'loss=4'}.",
    'Saving a checkpoint every 10 minutes to /mnt/ckpts',
    'Saving checkpoints to /mnt/ckpts',
    'The checkpoint was saved by an older version of this library',
    'Saving memory by activation checkpointing',
    'response: "At epoch 3 the loss: 0.5 was reached"',
    '[rollout 3] completion: step 5/10 loss: 0.5',
    '<think> step 3: the loss = 2.0 </think>',
    'val_loss = 1.04',
    'bob: val_loss = 1.04',
    'GET /api/metrics?step=1200&loss=0.41&epoch=3 HTTP/1.1" 200 5316',
    '- loss: 2.31',
    'epoch: 50, lr: 0.001, batch_size: 32, optimizer: adam',
    'step: 10, gamma: 0.1, lr: 0.001',
    'Epoch 3 val: 100%|██████████| 12/12 [00:02<00:00,  9.81it/s, loss=0.51]',
    'Epoch 1 of 3:  33%|███▎      | 1/3 [01:12<02:24, 72.12s/it]',
    'Step 3: accuracy check passed: 12',
    'bob: epoch 3 acc: 0.9 for me',
    '| grad_norm | 0.212 |',
    "return {'loss': 0.41, 'step': 3}",
    'x = loss(0.41, step=3)',
    'train_loss = 0.41',
    'git commit -m "epoch 3 loss: 0.41"',
    'SELECT * FROM runs WHERE step = 1200 AND loss < 2.31',
    'New best! epoch 3 loss 0.41',
    'Early stop at step 1200: loss 0.41',
    'trial 3: val_loss=0.41',
    '@karl: my val_loss = 0.64 at epoch 6',
    '<bob> hm, step=633 loss=0.86 looks wrong',
    '[04:08] bob: eval loss = 2.33 on step 400',
    'bob -> #ml: epoch 4: loss 1.47',
    '[2024-03-01 21:06] bob: step 500 now, loss 0.61',
    '01/03/2024, 9:06 PM - Bob Ray: epoch 3 done, loss 0.61',
    '=== Step 2 ===',
    'bob wrote: epoch 3, loss 0.61',
    'A: fyi step 500 loss 0.61',
    'In [3]: step = 5; loss = 0.4',
    "Out[3]: {'loss': 0.4, 'step': 3}",
    '// step 500: loss=0.61',
    '"step 500 loss 0.61",',
    'PASSED test_x[step=500-loss=0.61]',
    'Inference step 120 loss 0.5',
    'best: epoch 3, loss 0.4',
    'Generated: "step 3 loss 0.5"',
    'Epoch:  30%|## | 3/10 [00:12<00:28, 4.1s/it]',
    'Found checkpoint: step 500, loss 0.61',
    'Epoch 4 [Eval] loss=0.31:  42%|#1 | 394/938 [00:05<00:07, 74.9it/s]',
    '10s - sent: 100 - loss: 2',
    '[00:12.000 --> 00:15.000]  val_loss = 1.17 at epoch 2',
    'can someone rerun step 2420? loss=3.65',
    'saved checkpoint 253 to the wrong bucket, sorry',
    '- [x] step 7: val_loss = 2.46 at epoch 7',
    '{"role": "assistant", "content": "step 2100 loss 1.790 now"}',
    '[{"from": "human", "value": "epoch 1: loss 3.61"}]',
    '  "content": "loss 3.29 at step 2844",',
    '{"user": "bob", "text": "saved checkpoint 10", "ts": 1}',
    'com.acme.JobService - completed step 3 in 48 ms (total=2830, rate=217.5/s)',
    'com.acme.JobService - checkpoint written 10 in 401 ms (rate=380.2/s)',
    'physics step 12, 59.9 frames/s',
    'iter=3 price=0.4 images/s=3',
    'Figure 3: training loss at step 1200: 0.41',
    'The loss: 0.41 at step 1200 is normal.',
    '> saved checkpoint 7',
    'Saving results to /x/results_step_120.json',
    'Saving samples to /x/samples/step_120.png',
    'Saved predictions to /x/epoch_3/preds.json',
    'Config: epoch 100 | lr 0.001 | loss l1',
    '+    train_loss: 0.652',
    '@@ -15,7 +12,7 @@ saved checkpoint 6',
    '- [x] saved checkpoint 7',
    'tests/test_opt.py::test_loss[epoch=3-loss=0.5] PASSED [ 10%]',
]
"""Output around training, tried in every dress."""
PIECES = [
    ' ', '=', ':', '/', '|', '%|', ', ', "'", '[', '}', ' - ', '\r', '\x1b[0m', '━━━', 'it/s]',
    '[00:10<00:20, ', 'loss', 'step', 'lr', 'iteration', 'checkpoint', 'saving ', 'Epoch ', "{'loss': ",
    '{"step": ', '1', '40/900', '0.5', 'nan',
]
REPEATED = [
    'step ', 'step 1', 'loss=', '- loss: ', 'epoch ', '1', '1,', '1e', 'lr=1e5e', 'a/', '%|', '[', ' ',
    '━', "{'loss': 1, ", "'a': '", '{"a":', 'iteration 1/', 'step: 1  loss: ',
    'Training starts at step 1', 'checkpoint saved ', 'saving checkpoint ', 'saving checkpoint a',
    'a b ', '(a) ', 'loss 1 ', '1 tok/s ',
]
# fmt: on


def read(line: str) -> dict[str, Any]:
    reading = parse(line)
    if reading is None:
        return {}
    values = {field.name: getattr(reading, field.name) for field in fields(ParsedMetrics)}
    return {name: value for name, value in values.items() if value is not None and value is not False}


def agrees(found: object, expected: object) -> bool:
    return expected is ... or found == (
        pytest.approx(expected, nan_ok=True) if isinstance(expected, float) else expected
    )


def test_lines_are_read() -> None:
    wrong = {
        line: found
        for line, expected in EXACTLY + AT_LEAST
        if not all(agrees((found := read(line)).get(name), value) for name, value in expected.items())
    }
    assert wrong == {}


def test_all_of_a_line_is_read() -> None:
    assert [read(line).keys() for line, _ in EXACTLY] == [expected.keys() for _, expected in EXACTLY]


@pytest.mark.parametrize(
    "dress", ["{}", "\x1b[32m{}\x1b[0m", "[rank0]: {}", "\r{}"], ids=["plain", "ansi", "rank", "cr"]
)
def test_what_surrounds_training_gives_nothing(dress: str) -> None:
    assert {line: found for line in OTHER_LINES if (found := read(dress.format(line)))} == {}


def test_of_a_bar_that_overwrote_itself_the_last_state_counts() -> None:
    states = [
        f"\r\x1b[32m {n // 90}%|██        | {n}/9000 [01:00<21:00,  5.30s/it]\x1b[0m"
        for n in (4118, 4119, 4120)
    ]
    expected = {"step": 4120, "total_steps": 9000, "step_time_s": pytest.approx(5.3), "from_bar": True}
    assert read("".join(states)) == read("".join(states * 500)) == expected


def test_numbers_beyond_reason_are_not_taken_for_steps() -> None:
    assert "step" not in read("step=99999999999999999999 loss=1.0")
    assert read('{"step": ' + "9" * 400 + ', "loss": 1.5}') == {"loss": 1.5}


@given(st.text() | st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_no_line_is_too_strange(line: str) -> None:
    parse(line)


@pytest.mark.parametrize("piece", REPEATED)
def test_long_repetition_is_read_in_linear_time(piece: str) -> None:
    # A pattern that goes back over such a line at every place would take minutes here.
    for _ in range(5):
        parse(("step loss saving checkpoint " + piece * 8000)[:8000])


def test_huge_lines_are_not_read() -> None:
    assert parse("step=1 loss=2 " + "x" * 1_000_000) is None


@pytest.mark.parametrize(
    ("lines", "losses"),
    [
        (["Assistant: mine says", "Val loss: 1.04"], []),
        (["loss: 0.9 ||: 100%|###| 318/318 [01:22<00:00,  3.85it/s]",
          "INFO - Validating",
          "loss: 1.4 ||: 100%|###| 20/20 [00:02<00:00, 10.31it/s]",
          "Epoch 4/9",
          "loss: 0.8 ||: 100%|###| 318/318 [01:22<00:00,  3.85it/s]"], [0.9, 0.8]),
        (["100 samples for validation", "loss: 0.9 ||: 100%|###| 318/318 [01:22<00:00,  3.85it/s]"], [0.9]),
        (["Iteration: \t 1", "NumTrajs: \t 200", "Loss:     \t 0.1925", "MaxRew: \t -204.07"], [0.1925]),
        (["NumTrajs: \t 200", "Loss:     \t 0.1925"], []),
        (["  max_steps: 20000", "  epoch: 3", "  eval:", "    loss: 1.90", "  train_loss: 1.7"], []),
        (["name: base", "train_loss: 1.7", "epoch = 3", "loss = 2.8"], []),
        (["  max_steps: 20000", "step 1 | loss: 1.90", "train_loss: 1.7"], [1.9, 1.7]),
        (["trainer - Batch 567/17168: accuracy: 0.42, loss: 1.32",
          "INFO - x.training.trainer - Validating",
          "INFO - x.training.trainer - Batch 12/310: loss: 1.01",
          "INFO - x.training.trainer - Batch 1/17168: loss: 1.3"], [1.32, 1.3]),
        (["  Iter   Train Loss  Remaining Time", "     1  1.298   7.89m", "     2  1.28", "    10  1.1157  0.1m",
          "     2  9.9  0.1m"], [1.298, 1.1157]),
        (["epoch  iteration  main/loss  main/loss_ctc", "1  100  12.1  13.1"], [12.1]),
        (["E    #       LOSS TOK2VEC  LOSS NER", "  1     200        121.21   1212.12"], []),
        (["-- Epoch 1", "Norm: 20.31, NNZs: 64, T: 1437, Avg. loss: 1.213"], [1.213]),
        (["name  Train Loss  time", "1  1.298  7.89m"], []),
        (["iter: 20 / 700, total loss: 1.2", " >>> loss_cls: 0.6", " >>> lr: 0.001"], [1.2]),
        (["----------------", "| loss | 0.04 |", "| lr | 0.1 |", "| loss_scale | 2.0 |"], [0.04]),
    ],
    ids=["a dialog", "an evaluation's bar", "a split", "a block", "no block", "a configuration",
         "results in a file", "a training after its configuration", "an evaluation's lines", "columns", "columns of parts", "columns without a sum", "a line in a block", "no columns", "values below", "a table"],
)  # fmt: skip
def test_lines_before_say_what_a_line_is(lines: list[str], losses: list[float]) -> None:
    reader = Reader()
    told = [reading for line in lines if (reading := reader.read(line)) is not None]
    assert [one.loss for one in told if one.loss is not None] == losses
    assert [one.eval_loss for one in told if one.eval_loss is not None] == []


def test_a_learning_rate_alone_is_that_of_a_run_that_counts() -> None:
    rate = "2023-06-01 10:11:12.101801: Current learning rate: 0.00989"
    reader = Reader()
    assert reader.read(rate) is None
    reader.read("2023-06-01 10:11:12.101120: Epoch 12")
    assert reader.read(rate) == ParsedMetrics(learning_rate=0.00989)


def test_objects_printed_over_several_lines_are_read_at_their_end() -> None:
    fold = ProgressFold()
    stamp_ns = 1_748_772_672 * 10**9
    for step in (100, 200):
        text = f'{{\n  "step": {step},\n  "metrics": {{\n    "loss": 1.{step}\n  }},\n  "lr": 0.1\n}}'
        for row in text.split("\n"):
            for node in ("node-0", "node-1"):
                fold.add([LogLine(stamp_ns, row, node, None)])
                stamp_ns += 1
    torn = "{", '  "step": 300,', "Saving the model", '  "loss": 9.9', "}"
    fold.add([LogLine(stamp_ns + place, row, "node-0", None) for place, row in enumerate(torn)])
    assert fold.snapshot().loss_by_step == ((100, 1.1), (200, 1.2))
