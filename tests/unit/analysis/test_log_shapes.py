"""More of what trainers print, and of what stands between: each line tells what it should, or nothing.

A value of None must not be told; an ellipsis stands for any value.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from api_client.models.logs import LogLine
from tui.analysis.progress.fold import ParsedMetrics, ProgressFold, parse

# fmt: off
TOLD = [
    # HF / TRL / Axolotl / LF
    ("{'loss': 75.1831, 'grad_norm': 9.36, 'learning_rate': 9.9e-06, 'epoch': 1.0, 'num_input_tokens_seen': 65536, 'step_tokens_per_second': 18801.85, 'avg_tokens_per_second': 18801.85}", {"loss": 75.1831,"grad_norm": 9.36}),
    ("{'loss': 0.002, 'grad_norm': 41.0, 'learning_rate': 0.0, 'num_tokens': 1770.0, 'completions/clipped_ratio': 0.0, 'rewards/reward_len/mean': 16.37, 'reward': 16.3, 'reward_std': 2.0, 'kl': 0.05, 'clip_ratio/low_mean': 0.0, 'sampling/sampling_logp_difference/mean': 0.02, 'step_time': 6.4, 'epoch': 2.89}", {"loss": 0.002,"epoch": 2.89}),
    (" 25%|██▌       | 100/400 [10:12<30:36,  6.12s/it]\x1b[A{'loss': '1.204', 'grad_norm': '0.55', 'learning_rate': '1.5e-05', 'ppl': '3.33', 'memory/max_active (GiB)': '61.2', 'memory/max_allocated (GiB)': '61.2', 'tokens/train_per_sec_per_gpu': '2311.4', 'epoch': '0.25'}", {"loss": 1.204,"step": 100,"total_steps": 400,"tokens_per_s": 2311.4}),
    ("[INFO|2025-06-02 10:11:12] llamafactory.train.callbacks:143 >> {'loss': 0.8123, 'learning_rate': 4.9e-05, 'epoch': 0.31, 'throughput': 4312.11}", {"loss": 0.8123,"tokens_per_s": 4312.11}),
    ('{"current_steps": 40, "total_steps": 1200, "loss": 0.8123, "lr": 4.9e-05, "epoch": 0.1, "percentage": 3.33, "elapsed_time": "0:01:10", "remaining_time": "0:33:50"}', {"step": 40,"total_steps": 1200,"loss": 0.8123}),
    ("{'loss': 1.41, 'token_acc': 0.66, 'grad_norm': 0.98, 'learning_rate': 9.8e-05, 'memory(GiB)': 17.9, 'train_speed(s/it)': 2.1, 'epoch': 0.21, 'global_step/max_steps': '30/140', 'elapsed_time': '1m 3s', 'remaining_time': '3m 51s', 'loss_scale': 1.0}", {"loss": 1.41,"step": 30,"total_steps": 140}),
    ("Train:  21%|██▏       | 30/140 [01:03<03:51,  2.10s/it]", {"step": 30,"total_steps": 140}),
    ("{'eval_loss': 0.8012, 'eval_token_acc': 0.71, 'eval_runtime': 3.1, 'eval_samples_per_second': 31.0, 'eval_steps_per_second': 15.2, 'epoch': 0.35, 'global_step/max_steps': '50/140', 'percentage': '35.71%'}", {"eval_loss": 0.8012}),
    ("{'eval_loss': '0.9041', 'eval_runtime': '12.41', 'eval_rewards/chosen': '0.21', 'eval_rewards/margins': '0.5', 'eval_logps/rejected': '-212', 'epoch': '1'}", {"eval_loss": 0.9041,"epoch": 1.0}),
    # accelerate no_trainer examples
    ("  3%|▎         | 120/4000 [02:11<1:10:41,  1.09s/it]", {"step": 120,"total_steps": 4000}),
    ("06/12/2025 10:11:12 - INFO - __main__ -   Total optimization steps = 4000", {"total_steps": 4000}),
    ("epoch: 1 step: 100, loss is 2.3056", {"step": 100,"loss": 2.3056}),  # MindSpore
    ("epoch 1: perplexity: 9.81 eval_loss: 2.2833", {"eval_loss": 2.2833}),
    ("06/12/2025 10:11:12 - INFO - __main__ - epoch 0: perplexity: 12.3 eval_loss: 2.51", {"eval_loss": 2.51}),
    ("Steps:   1%|          | 12/1500 [00:31<1:01:12,  2.47s/it, loss=0.0812, lr=1e-5]", {"step": 12,"loss": 0.0812}),
    # Unsloth
    ("==((====))==  Unsloth - 2x faster free finetuning | Num GPUs used = 1", None),
    ("   \\\\   /|    Num examples = 51,760 | Num Epochs = 1 | Total steps = 60", {"total_steps": 60}),
    ("O^O/ \\_/ \\    Batch size per device = 2 | Gradient accumulation steps = 4", None),
    ("{'loss': 1.8312, 'grad_norm': 0.2917, 'learning_rate': 4e-05, 'epoch': 0.0}", {"loss": 1.8312}),
    ("Unsloth: Saved LoRA adapter to /mnt/ckpts/checkpoint-60", {"checkpoint": 'checkpoint-60'}),
    # Lightning
    ("Epoch 2:  13%|█▎        | 65/500 [00:19<02:09,  3.36it/s, v_num=12, train/loss=0.713, lr-AdamW=1.2e-5]", {"epoch_step": 65,"loss": 0.713,"learning_rate": 1.2e-5}),
    ("Epoch 0:   1%|          | 5/500 [00:03<05:11,  1.59it/s, loss=2.31, v_num=0]", {"epoch_step": 5,"loss": 2.31}),
    ("Epoch 4: 100%|██████████| 500/500 [02:31<00:00,  3.30it/s, v_num=12, train_loss=0.31, val_loss=0.402, val_acc=0.87]", {"loss": 0.31,"eval_loss": 0.402}),
    ("Epoch 1/4 \x1b[35m━━━━━━━━\x1b[0m\x1b[37m╺━━━━━━━\x1b[0m \x1b[37m250/500\x1b[0m \x1b[37m0:01:11 • 0:01:10\x1b[0m \x1b[37m3.55it/s\x1b[0m \x1b[37mv_num: 3.000 train_loss: 0.551\x1b[0m", {"epoch_step": 250,"loss": 0.551}),
    ("`Trainer.fit` stopped: `max_epochs=5` reached.", None),
    ("Metric val_loss improved by 0.012 >= min_delta = 0.0. New best score: 0.402", None),
    ("Sanity Checking DataLoader 0: 100%|██████████| 2/2 [00:00<00:00,  4.11it/s]", None),
    # keras
    ("\x1b[1m  1/782\x1b[0m \x1b[37m━━━━━━━━━━━━━━━━━━━━\x1b[0m \x1b[1m5:12\x1b[0m 400ms/step - accuracy: 0.1250 - loss: 2.3019", {"epoch_step": 1,"epoch_steps": 782,"loss": 2.3019}),
    ("782/782 ━━━━━━━━━━━━━━━━━━━━ 31s 39ms/step - accuracy: 0.5112 - loss: 1.3512 - val_accuracy: 0.5912 - val_loss: 1.1512 - learning_rate: 0.0010", {"loss": 1.3512,"eval_loss": 1.1512,"learning_rate": 0.001}),
    ("Epoch 7/20", {"epoch": 6.0,"total_epochs": 20.0}),
    ("Epoch 5: early stopping", None),
    ("Epoch 3: ReduceLROnPlateau reducing learning rate to 0.00010000000474974513.", None),
    ("100/100 - 12s - 119ms/epoch - loss: 0.5512", {"loss": 0.5512}),
    # megatron
    (" [2025-06-01 08:12:11] iteration      200/   95367 | consumed samples:       204800 | elapsed time per iteration (ms): 6120.4 | throughput per GPU (TFLOP/s/GPU): 431.2 | learning rate: 2.997000E-05 | global batch size:  1024 | lm loss: 6.312345E+00 | load_balancing_loss: 1.012E+00 | loss scale: 1.0 | grad norm: 1.213 | params norm: 231.22 | number of skipped iterations:   0 | number of nan iterations:   0 |", {"step": 200,"total_steps": 95367,"loss": 6.312345,"grad_norm": 1.213,"step_time_s": 6.1204}),
    ("(min, max) time across ranks (ms):", None),
    ("    forward-backward ...............................: (6011.21, 6013.98)", None),
    ("[rank12]:  iteration      201/   95367 | consumed samples:  205824 | elapsed time per iteration (ms): 6100.1 | learning rate: 3.0E-05 | global batch size:  1024 | lm loss: 6.30E+00 | mtp_1 loss: 7.1E+00 | loss scale: 1.0 | grad norm: 1.2 |", {"step": 201,"loss": 6.30,"rank": 12}),
    ("----------------------------------------------------------------------------------------------------------------", None),
    (" validation loss at iteration 2000 | lm loss value: 3.112345E+00 | lm loss PPL: 2.247E+01 | ", {"step": 2000,"eval_loss": 3.112345}),
    ("saving checkpoint at iteration    2000 to /mnt/ckpts in torch_dist format", {"checkpoint": 'iter_0002000'}),
    ("WARNING: could not find the metadata file /mnt/ckpts/latest_checkpointed_iteration.txt", None),
    ("    will not load any checkpoints and will start from random", None),
    ("  lr_decay_iters .................................. 95367", None),
    ("  train_iters ..................................... 95367", None),
    ("  eval_interval ................................... 2000", None),
    ("setting number of microbatches to constant 64", None),
    # torchtitan
    ("[rank0]:[titan] 2025-06-09 10:11:12,345 - root - INFO - step: 20  loss:  9.1234  grad_norm:  3.2110  memory: 51.55GiB(65.2%)  tps: 7,011  tflops: 401.12  mfu: 40.56%", {"step": 20,"loss": 9.1234,"grad_norm": 3.211,"tokens_per_s": 7011.0,"rank": 0}),
    ("[rank0]:2025-06-09 10:11:12,345 - root - INFO - step:  1  loss: 12.2613  grad_norm:  4.5051  memory:  9.61GiB(10.12%)  tps: 55  tflops: 0.41  mfu: 0.04%", {"step": 1,"loss": 12.2613}),
    ("[titan] 2025-06-09 10:11:12 - root - INFO - Saved the checkpoint in 12.31 seconds (or staging …).", {"checkpoint": ''}),
    ("[titan] 2025-06-09 10:11:12 - root - INFO - Finished saving the checkpoint (or staging if async is enabled)in 4.41 seconds.", {"checkpoint": ''}),
    ("[titan] - root - INFO - CUDA memory usage for model: 3.75GiB(4.72%)", None),
    ("[titan] - root - INFO - Trainer is initialized with local batch size 8, global batch size 64, gradient accumulation steps 1, sequence length 8192, total steps 1000 (warmup 200)", {"total_steps": 1000}),
    ("[titan] - root - INFO - Training completed", None),
    # NeMo
    ("Training epoch 0, iteration 120/149 | lr: 3e-05 | consumed_samples: 121 | global_batch_size: 1 | global_step: 120 | reduced_train_loss: 1.233 | train_step_timing in s: 0.03146 | val_loss: 4.106", {"step": 121,"total_steps": 150,"loss": 1.233,"eval_loss": 4.106}),
    ("Training epoch 1, iteration 3/149 | lr: 2.9e-05 | global_batch_size: 8 | global_step: 153 | max_memory_reserved: 6.1e10 | max_memory_allocated: 5.9e10 | reduced_train_loss: 0.901 | train_step_timing in s: 1.21 | consumed_samples: 1232", {"loss": 0.901}),
    ("[NeMo I 2025-06-01 10:11:12 nemo_logging:393] Global Checkpoint Save : Rank: 0 : Iteration: 149 : Start time: 1748772672.1s : Save duration: 11.2s", {"checkpoint": 'iter_0000149'}),
    ("Validation: iteration 1/32", None),
    ("Validation: iteration 32/32", None),
    ("[NeMo W 2025-06-01 10:11:12 nemo_logging:405] Recommend using CUDA_DEVICE_MAX_CONNECTIONS=1", None),
    ("Epoch 0, global step 149: 'reduced_train_loss' reached 1.23300 (best 1.23300), saving model to '/mnt/ckpts/step=149.ckpt' as top 1", {"checkpoint": 'step=149'}),
    # verl
    ("(TaskRunner pid=9321) step:7 - global_seqlen/min:81211 - actor/entropy:0.31 - critic/vf_loss:0.12 - actor/pg_loss:0.0041 - actor/pg_clipfrac:0.001 - actor/ppo_kl:0.0003 - actor/grad_norm:0.22 - actor/lr:1e-06 - training/global_step:7 - training/epoch:0 - critic/score/mean:0.4 - response_length/mean:412.0 - timing_s/gen:31.2 - timing_s/step:71.4 - perf/total_num_tokens:91231 - perf/throughput:1511.9", {"step": 7,"loss": 0.0041,"tokens_per_s": 1511.9,"step_time_s": 71.4}),
    ("(TaskRunner pid=9321) Training Progress:   1%|          | 7/1050 [09:12<20:41:12, 71.40s/it]", {"step": 7,"total_steps": 1050}),
    ("(WorkerDict pid=9911) INFO:2025-06-01 10:11:12,123:[Rank 0] Saved model to /mnt/ckpts/global_step_100/actor/model_world_size_8_rank_0.pt", {"checkpoint": 'global_step_100'}),
    ("(TaskRunner pid=9321) Total training steps: 1050", {"total_steps": 1050}),
    ("step:25 - train/loss:0.812 - train/lr(1e-3):0.0099 - train/time(s):2.13", {"step": 25,"loss": 0.812,"learning_rate": 0.0099/1000}),
    # deepspeed
    ("[2025-06-01 10:11:12,345] [INFO] [logging.py:107:log_dist] [Rank 0] step=10, skipped=2, lr=[3e-06, 3e-06], mom=[[0.9, 0.999], [0.9, 0.999]]", {"step": 10,"learning_rate": 3e-6}),
    ("[2025-06-01 10:11:12,345] [INFO] [timer.py:264:stop] epoch=0/micro_step=10/global_step=10, RunningAvgSamplesPerSec=33.1, CurrSamplesPerSec=34.9, MemAllocated=3.1GB, MaxMemAllocated=11.2GB", {"step": 10,"samples_per_s": 34.9}),
    ("steps: 30 loss: 7.1210 iter time (s): 1.001 samples/sec: 127.912", {"step": 30,"loss": 7.121,"samples_per_s": 127.912}),
    ("[2025-06-01 10:11:12,345] [INFO] [logging.py:107:log_dist] [Rank 0] [Torch] Checkpoint global_step500 is about to be saved!", None),
    ("[2025-06-01 10:11:12,345] [INFO] [torch_checkpoint_engine.py:23:save] [Torch] Saving /mnt/ckpts/global_step500/mp_rank_00_model_states.pt...", {"checkpoint": 'global_step500'}),
    ("[2025-06-01 10:11:12,345] [INFO] [loss_scaler.py:190:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768", None),
    ("Epoch: 0, Step: 4, Rank: 3, loss = 2.104", {"loss": 2.104,"step": 4}),
    ("***** Running training *****", None),
    # torchtune
    ("Step 12 | loss:1.1174635887145996 lr:2e-05 tokens_per_second_per_gpu:542.9 peak_memory_active:16.1 peak_memory_alloc:16.1 peak_memory_reserved:17.5", {"step": 12,"loss": 1.1174635887,"learning_rate": 2e-5,"tokens_per_s": 542.9}),
    ("1|12|Loss: 1.117463:   1%|          | 12/1617 [00:31<1:10:11,  2.62s/it]", {"step": 12,"total_steps": 1617,"loss": 1.117463}),
    ("INFO:torchtune.utils._logging:Model checkpoint of size 4.97 GiB saved to /mnt/ckpts/epoch_0/ft-model-00001-of-00004.safetensors", {"checkpoint": 'epoch_0'}),
    ("INFO:torchtune.utils._logging:Saving final epoch checkpoint.", {"checkpoint": ''}),
    ("INFO:torchtune.utils._logging:Learning rate scheduler is initialized.", None),
    ("max_steps_per_epoch: null", None),
    ("  lr: 2.0e-05", None),
    # OpenRLHF
    ("Train epoch [1/2]:  25%|██▌       | 64/256 [02:11<06:31,  2.04s/it, loss=1.31, lr=8.9e-6]", {"loss": 1.31}),
    ("Episode [1/20]:  12%|█▎        | 4/32 [05:12<36:21, 77.9s/it, policy_loss=-0.012, kl=0.003, reward=0.41, actor_lr=5e-7]", {"loss": -0.012}),
    ("Global step 12: {'policy_loss': 0.0123, 'actor_lr': 5e-07, 'kl': 0.002, 'reward': 0.51, 'return': 0.5, 'response_length': 311.2, 'timing/step_total': 61.2}", {"step": 12,"loss": 0.0123}),
    ("✨ Global step 12: {'policy_loss': 0.0123, 'reward': 0.51}", {"step": 12,"loss": 0.0123}),
    # fairseq
    ("| epoch 010  2000 / 8223 loss=1.27 (1.50), wps=962, wpb=908, bsz=32, lr=0.001, clip=100%, gnorm=2.1427", {"loss": 1.27,"grad_norm": 2.1427}),
    ("| epoch 001:    450 / 1891 loss=11.521, nll_loss=10.881, ppl=1886.05, wps=52922, ups=0.5, wpb=104928, bsz=5325, num_updates=445, lr=8.90889e-05, gnorm=1.543, clip=0%", {"step": 445,"loss": 11.521}),
    ("| epoch 081 | valid on 'valid' subset | loss 6.846 | nll_loss 4.610 | ppl 24.41 | num_updates 10092 | best_loss 6.84088", {"eval_loss": 6.846,"step": 10092,"loss": None}),
    ("| epoch 008 | valid on 'valid' subset | valid_loss 6.43844 | valid_nll_loss 5.23288 | valid_ppl 37.61 | num_updates 21896 | best 6.43844", {"eval_loss": 6.43844,"loss": None}),
    ("| epoch 010 | valid on 'valid' subset  1000 / 1311 loss=1.60", {"loss": None}),
    ("2025-06-01 10:11:12 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 8.1 | nll_loss 6.88 | ppl 118.06 | wps 210000 | num_updates 600", {"eval_loss": 8.1,"loss": None}),
    ("2025-06-01 10:11:12 | INFO | valid | {\"epoch\": 1, \"valid_loss\": \"8.114\", \"valid_nll_loss\": \"6.883\", \"valid_ppl\": \"118.06\", \"valid_num_updates\": \"600\"}", {"eval_loss": 8.114,"loss": None}),
    ("2025-06-01 10:11:12 | INFO | fairseq.checkpoint_utils | Saved checkpoint /mnt/ckpts/checkpoint_1_600.pt (epoch 1 @ 600 updates, score 8.114) (writing took 3.12 seconds)", {"checkpoint": ...}),
    # litgpt & nnunet
    ("Epoch 1 | iter 170 step 170 | loss train: 11.500, val_loss valid: 10.867 | iter time: 39.782 s (step)", {"step": 170,"loss": 11.5}),
    ("Epoch 1 | iter 180          | val_loss: 11.653 | val_time: 79.557 s", {"eval_loss": 11.653,"loss": None}),
    ("iter 200: val loss 1.4021, val time: 1412.1 ms", {"eval_loss": 1.4021,"loss": None}),
    ("2025-06-01 10:11:12.123456: train_loss -0.5123", None),
    # nanochat / llm.c
    ("step 00120/21400 (0.56%) | loss: 4.512000 | grad_norm: 0.71230 | lrm: 1.00 | dt: 512.40ms | tok/sec: 1,023,111 | mfu: 41.69 | total time: 1.02m", {"step": 120,"total_steps": 21400,"loss": 4.512,"tokens_per_s": 1023111.0}),
    ("Step 00250 | Validation bpb: 1.1012", None),
    ("step 250: train loss 2.2, val loss 2.3", {"step": 250,"loss": 2.2,"eval_loss": 2.3}),
    ("iter 250: loss 2.2012, time 512.12ms, mfu 41.2%", {"step": 250,"loss": 2.2012,"step_time_s": 0.51212}),
    # plain
    ("2025-06-01T10:11:12Z INFO trainer: step=1200/5000 epoch=0.24 loss=0.8312 lr=1.99e-05 grad_norm=0.612 tokens/s=81233 eta=1:02:11", {"step": 1200,"total_steps": 5000,"loss": 0.8312,"tokens_per_s": 81233.0}),
    ("[node-1][rank 9] step 1200: loss=0.8312", {"step": 1200,"loss": 0.8312}),
    ("(0) [2025-06-01 10:11:12] step=1200, loss=0.83, lr=2e-5", {"step": 1200,"loss": 0.83}),
    ("Epoch 3 Step 1200 Loss 0.8312 LR 2e-05", {"step": 1200,"loss": 0.8312}),
    ("[1200/5000] loss: 0.8312 lr: 2e-5", {"step": 1200,"total_steps": 5000,"loss": 0.8312}),
    ("train: step 1200 loss 0.8312 ppl 2.29", {"step": 1200,"loss": 0.8312}),
    ("Iter 1200 | Train Loss 0.83 | Val Loss 0.91 | LR 2.0e-05 | 12.1 it/s", {"step": 1200,"loss": 0.83,"eval_loss": 0.91}),
    ("Iter 1: Train loss 2.701, Learning Rate 1.000e-05, It/sec 1.201, Tokens/sec 512.31, Trained Tokens 4096, Peak mem 9.1 GB", {"step": 1,"loss": 2.701,"learning_rate": 1e-5,"tokens_per_s": 512.31}),
    ("Iter 200: Val loss 1.551, Val took 12.1s", {"step": 200,"eval_loss": 1.551,"loss": None}),
    ("Iter 100: Saved adapter weights to adapters/adapters.safetensors and adapters/0000100_adapters.safetensors.", {"checkpoint": ...}),
    # JSON
    ('{"ts": 1748772672.1, "event": "train", "step": 40, "data": {"loss": 1.21, "lr": 1e-5}}', {"step": 40,"loss": 1.21}),
    ('{"level":"info","ts":1748772672.1,"caller":"train/loop.go:88","msg":"train","step":40,"loss":1.21}', {"step": 40,"loss": 1.21}),
    ('INFO {"train/loss": 1.21, "train/global_step": 40, "_runtime": 12.1}', {"loss": 1.21,"step": 40}),
    ('{"step": 40, "eval/loss": 1.3}', {"step": 40,"eval_loss": 1.3,"loss": None}),
    # detectron2/timm/mm
    ("[06/01 10:11:12] d2.utils.events INFO:  eta: 0:22:11  iter: 99  total_loss: 1.512  loss_cls: 0.41  loss_box_reg: 0.6  time: 0.31  last_time: 0.30  data_time: 0.01  lr: 0.0019  max_mem: 5112M", {"step": 99,"loss": 1.512,"learning_rate": 0.0019}),
    ("06/01 10:11:12 - mmengine - INFO - Epoch(val) [1][50/50]    coco/bbox_mAP: 0.31  data_time: 0.002  time: 0.05", None),
(" samples/sec: 12.331 | iteration      100/  320000 | elapsed time per iteration (ms): 1300.1 | learning rate: 6.000E-04 | approx flops per GPU: 61.2TFLOPS | lm_loss: 5.112E+00 | number of skipped iterations:   0 | number of nan iterations:   0 |", {"step": 100,"total_steps": 320000,"loss": 5.112}),
("completed step: 10, seconds: 5.310, TFLOP/s/device: 201.113, Tokens/s/device: 5123.112, total_weights: 65536, loss: 8.123", {"step": 10,"loss": 8.123,"tokens_per_s": 5123.112}),
("06/01 10:11:12 - mmengine - INFO - Iter(train) [  10/1000]  lr: 1.0012e-05  eta: 1:01:11  time: 5.3112  data_time: 0.0112  memory: 6012  loss: 1.2112  grad_norm: 0.7112", {"step": 10,"total_steps": 1000,"loss": 1.2112,"grad_norm": 0.7112}),
("10:11:12    INFO Step 10 | Time: 61.21s | Loss: 0.0123 | Entropy: 0.5123 | Mismatch KL: 0.0011 | Grad. Norm: 0.7123 | LR: 1.00e-06 | Throughput: 12345 tokens/s | MFU: 20.1% | Peak Mem.: 61.2 GiB", {"step": 10,"loss": 0.0123}),
("[INFO|DP=0|PP=0|TP=0]: iteration: 10 / 1000 | consumed_tokens: 1.31M | time_per_iteration_ms: 512 | tokens_per_sec: 12.1K | tokens_per_sec_per_gpu: 1.5K | global_batch_size: 128 | lm_loss: 9.12 | lr: 1e-05 | model_tflops_per_gpu: 12.1 | grad_norm: 1.21", {"step": 10,"total_steps": 1000,"loss": 9.12,"grad_norm": 1.21,"learning_rate": 1e-5}),
("speechbrain.utils.train_logger - epoch: 1, lr: 1.00e-04 - train loss: 5.12 - valid loss: 4.11, valid WER: 90.12", {"epoch": 1.0,"loss": 5.12,"eval_loss": 4.11}),
("[host] 2025-06-01 10:11:12,123 (trainer:732) INFO: 1epoch:train:1-100batch: iter_time=0.112, forward_time=0.212, loss=51.212, acc=0.312, optim0_lr0=1.112e-05, train_time=1.112", None),
("2025-06-01 10:11:12,123 INFO [train.py:1012] (0/8) Epoch 1, batch 50, loss[loss=0.6112, simple_loss=1.112, pruned_loss=0.7, over 5000.00 frames. ], tot_loss[loss=0.8112, over 100000.00 frames. ], batch size: 40, lr: 2.01e-03", {"loss": 0.6112}),
("steps:   1%|          | 10/1600 [00:21<56:11,  2.12s/it, avr_loss=0.112]", {"step": 10,"total_steps": 1600,"loss": 0.112}),
("my_lora:   5%|▌         | 100/2000 [02:01<38:11,  1.21s/it, lr: 1.0e-04 loss: 3.12e-01]", {"step": 100,"loss": 0.312}),
("steps: 10 loss: 0.1212 iter time (s): 2.112 samples/sec: 0.412 eta: 1h2m", {"step": 10,"loss": 0.1212,"step_time_s": 2.112}),
("INFO 2025-06-01 10:11:12 ts/train.py:250 step:200 smpl:2K ep:3 epch:0.10 loss:0.512 grdn:12.112 lr:1.0e-05 updt_s:0.312 data_s:0.012", {"step": 200,"loss": 0.512,"learning_rate": 1e-5}),
("step 10: {'train/loss': 0.1123, 'train/grad_norm': 0.71, 'train/lr-pg_0': 1e-06, 'train/step': 10}", {"step": 10,"loss": 0.1123}),
("[Epoch 0 / Step 10] loss: 1.2112", {"step": 10,"loss": 1.2112}),
("Epoch: 0 | Batch: 100/5000 | Loss: 2.1112 | Time: 12.1s", {"loss": 2.1112}),
("Training | Epoch 2/10 | Step 340/1000 | Loss 0.4112 | 3.1 it/s", {"loss": 0.4112}),
("Training epoch 3: 100%|██████████| 1000/1000 [05:12<00:00,  3.21it/s, loss=0.4112]", {"loss": 0.4112}),
("\x1b[32m2025-06-01 10:11:12.123\x1b[0m | \x1b[1mINFO    \x1b[0m | \x1b[36mtrain\x1b[0m:\x1b[36mrun\x1b[0m:\x1b[36m88\x1b[0m - \x1b[1mstep=300 loss=1.0112 lr=2e-05\x1b[0m", {"step": 300,"loss": 1.0112}),
("2025-06-01T10:11:12.123Z [node-3] [3]: step 300/1000 train_loss=1.0112", {"step": 300,"total_steps": 1000,"loss": 1.0112}),
("I0601 10:11:12.123456 140001 train.py:88] step = 300, loss = 1.0112 (5.312 sec)", {"step": 300,"loss": 1.0112}),
("INFO:tensorflow:global_step/sec: 4.12", None),
("INFO:tensorflow:loss = 0.5112, step = 300 (24.112 sec)", {"step": 300,"loss": 0.5112}),
("INFO:tensorflow:Saving checkpoints for 300 into /mnt/ckpts/model.ckpt.", {"checkpoint": ...}),
("Saved checkpoint for step 300: /mnt/ckpts/ckpt-300", {"checkpoint": ...}),
("Checkpoint saved to /mnt/ckpts/step_300.pt", {"checkpoint": ...}),
("[rank0]: Saving FSDP checkpoint shard 0 of 8 to /mnt/ckpts/step_300", {"checkpoint": ...}),
("2025-06-01 10:11:12 [INFO] val_loss=1.1112 step=300", {"eval_loss": 1.1112,"step": 300,"loss": None}),
("[EVAL] step 300 loss 1.1112", {"eval_loss": 1.1112,"step": 300,"loss": None}),
("Evaluation at step 300: loss=1.1112, ppl=3.03", {"eval_loss": 1.1112,"step": 300,"loss": None}),
("validation | step 300 | loss 1.1112", {"eval_loss": 1.1112,"step": 300,"loss": None}),
("Step 300 - Eval loss: 1.1112", {"eval_loss": 1.1112,"step": 300,"loss": None}),
("Test set: Average loss: 0.0512, Accuracy: 9812/10000 (98%)", {"eval_loss": 0.0512,"loss": None}),
("eval: step 300 loss 1.1112", {"eval_loss": 1.1112,"loss": None}),
("  Validation loss: 1.1112", {"eval_loss": 1.1112}),
("epoch 3: train_loss=0.51 valid_loss=0.61 time=12.1s", {"epoch": 3.0,"loss": 0.51,"eval_loss": 0.61}),
("loss: nan at step 412", {"step": 412}),
("WARNING: step 412 loss is nan, skipping", {"step": 412}),
("Step 412: loss=inf, skipping update", {"step": 412}),
]
NONE = [
    # prose w/ numbers
    "At step 3 the loss 2.5 was still high, so we lowered the learning rate",
    "After step 3, expect loss 2.5 or below",
    "in epoch 2 loss 0.5 is normal",
    "NOTE: step 100 should reach loss 1.2 on this dataset",
    "See step 3 of the guide: training with loss 2 GPUs",
    "You reached loss 0.5 at step 10; congratulations!",
    "# at step 10 the loss 2.0 is expected",
    "Retrying step 3 because of packet loss 12",
    "Step 3/10: installing dependencies, loss of 2 connections",
    "packet loss: 5 at iteration 3",
    "I0601 10:11:12 net.cc:40] iteration 5 packet loss 2.5",
    "64 bytes from 10.0.0.1: icmp_seq=3; 10 packets transmitted, 10 received, 0% packet loss, time 9012ms",
    "step 2 of 5: compute the loss (1.0 is a good weight)",
    "We recommend lr 2e-5 and step 500 for saving",
    # config dumps
    "lr=2e-05, step=500, gamma=0.1, loss_weight=1.0",
    "optimizer: AdamW lr: 2e-5 betas: (0.9, 0.95) eps: 1e-8",
    "StepLR(step_size=30, gamma=0.1, last_epoch=-1, loss=1)",
    "save_steps: 500",
    "eval_steps .......... 500",
    "  --lr LR               learning rate (default: 2e-05)",
    "  --steps STEPS         number of steps (default: 1000), loss 1",
    "usage: train.py [-h] [--step 3] [--loss 2.0]",
    "Namespace(step=3, loss=2.0, lr=0.1)",
    "config: {'step': 3, 'loss': 'mse', 'lr': 0.1}",
    "{'loss_type': 'dapo', 'max_steps': 100, 'loss': 'sigmoid'}",
    '{"trainer": {"max_steps": 1000, "loss": "ce"}, "lr": 0.1}',
    "hydra.sweep: step=3 loss=ce",
    "python train.py --step=3 --loss=2.0 --lr 1e-5",
    "+ torchrun --nproc_per_node 8 train.py lr=1e-5 loss=0.1 step=3",
    "export STEP=3 LOSS=2.0",
    "│ loss_fn      │ CrossEntropyLoss │ 0      │",
    "4 | loss  | CrossEntropyLoss | 0 | train",
    "learning_rate ................................... 3e-05",
    "| lr | 2e-05 | step | 500 | loss | 1 |",
    # stack traces
    '  File "/app/train.py", line 120, in step 3 loss=2.0',
    "    loss = outputs.loss / 8  # step 3",
    "    assert loss < 100, f'step {step} loss {loss}'",
    "    print(f'step {step} loss {loss:.4f}')",
    "AssertionError: step 3: loss 2.0 differs from reference 1.9",
    "ValueError: step 3 has loss 2.0 which is out of range",
    "KeyError: 'loss'",
    "RuntimeError: expected step 3 but got step 4, loss 1",
    "E   assert 0.5 == 0.4  # loss at step 3",
    "  warnings.warn('step 3: loss 2.0 is too large')",
    "frame #3: c10d::ProcessGroupNCCL::Work + 0x4120 (0x7f00 in /usr/lib/libtorch_cuda.so), step 3 loss 1",
    # nvidia-smi, nccl, pip
    "|   0  NVIDIA H100 80GB HBM3          On  | 00000000:18:00.0 Off |                    0 |",
    "| N/A   41C    P0             412W / 700W |  61200MiB / 81559MiB |     97%      Default |",
    "node-0:412:820 [3] NCCL INFO comm 0x55 rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 9a000 commId 0x9 - Init COMPLETE",
    "NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1",
    "Collecting torch==2.6.0",
    "     ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 766.7/766.7 MB 5.1 MB/s eta 0:00:00",
    "Downloading flash_attn-2.7.4.tar.gz (6.0 MB)",
    "Requirement already satisfied: steps>=3 in /usr/lib/python3/dist-packages (3.1)",
    "Successfully installed step-3.1 loss-2.0",
    "Building wheels for collected packages: flash-attn",
    "=> [stage 3/7] RUN pip install -r requirements.txt",
    "#12 [ 4/10] RUN pip install loss 2.0",
    # model summaries
    "┃ Layer (type)                    ┃ Output Shape           ┃       Param # ┃",
    "│ dense (Dense)                   │ (None, 10)             │         1,290 │",
    "trainable params: 41,943,040 || all params: 8,072,204,288 || trainable%: 0.5196",
    "  (loss): CrossEntropyLoss(ignore_index=-100) step 3 2.0",
    "Total params: 1,290 (5.04 KB)",
    "Non-trainable params: 0, step 3",
    # bars
    "Loading weights: 100%|██████████| 291/291 [00:03<00:00, 91.1it/s]",
    "Fetching 30 files: 100%|██████████| 30/30 [00:00<00:00, 301.1it/s]",
    "Processed prompts: 100%|██████████| 256/256 [00:12<00:00, 21.2it/s, est. speed input: 412.1 toks/s, output: 2311.2 toks/s]",
    "Capturing CUDA graph shapes: 100%|██████████| 35/35 [00:20<00:00,  1.71it/s]",
    "Saving the dataset (1/1 shards): 100%|██████████| 1000/1000 [00:00<00:00, 40011.2 examples/s]",
    "Generating train split: 100%|██████████| 1000/1000 [00:00<00:00, 40011.2 examples/s]",
    "Computing reference log probs: 10%|█         | 10/100 [00:10<01:30,  1.01s/it]",
    "Computing checksums: 100%|#| 12/12",
    "Waiting for step 3/10 to finish; loss: 1",
    # misc
    "2025-06-01 10:11:12 WARNING step took 12.3 s (usual: 5.3 s)",
    "gradient norm 0.71, clipped to 1.0",
    "WARNING step waited for this rank: 1.40 s behind the fastest",
    "Early stopping at epoch 3: best loss 0.5 at step 10",
    "Best val loss so far: 0.5 (step 10)",
    "best loss 0.41 at step 1200",
    "Loaded checkpoint at step 1200 with loss 0.83",
    "Resumed from step 1200, loss was 0.83",
    "Will save a checkpoint every 500 steps",
    "Removing checkpoint at step 500",
    "wandb: train/loss █▆▄▃▂▂▁▁▁▁",
    "wandb:         train/loss 0.8312",
    "wandb:  train/global_step 1200",
    "wandb: Run summary:",
    "Train loss: 0.5123 | best",
    "target loss: 0.5, max steps: 100",
    "loss scale: 1024, step: 10",
    "loss_scale=65536.0 step=10",
    "Memory at step 10: 41 GB",
    "Time for step 10: 5.1 s",
"{'train_batch_size': 8, 'steps_per_print': 10, 'loss_scale': 0, 'gradient_clipping': 1.0}",
'    "loss_scale": 0.0,','    "steps_per_print": 10,',
"  dynamic_loss_scale_args ...... {'init_scale': 65536, 'scale_window': 1000}",
"[2025-06-01 10:11:12,123] [INFO] [config.py:1003:print]   steps_per_print .............. 10",
"[2025-06-01 10:11:12,123] [INFO] [config.py:1003:print]   initial_dynamic_scale ........ 65536",
"trainer.steps=300 trainer.loss=ce optimizer.lr=1e-5",
"wandb: ⭐️ View project at https://wandb.ai/x?step=3&loss=2",
"GET /metrics?step=300&loss=1.5 HTTP/1.1 200",
"https://example.com/docs/step/3?loss=2.0",
"DEBUG dataloader: batch 300 loaded in 0.12 s",
"worker 3: 300 items in the last minute","heartbeat 300 ok",
"Batch 300 of 5000 tokenized",
"Epoch 3 begins","Starting epoch 3 of 10","=== Step 3: train the model ===",
"| loss          | 0.5112   |","|    n_updates     | 300     |",
"nn.CrossEntropyLoss(reduction='mean')  # step 3",
"Iteration over 300 files, 12 lost",
"Traceback (most recent call last):",
'  File "/usr/lib/python3.11/site-packages/torch/optim/optimizer.py", line 493, in wrapper',
"    out = func(*args, **kwargs)","loss.backward()","    self.loss = 2.0  # step 3",
"    if step % 300 == 0: print(loss)","    step = 3; loss = 2.0",
"TypeError: step() got an unexpected keyword argument 'loss'",
"assert loss == 2.0 at step 3",
"[rank3]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3384, step 3, loss 2.0",
"terminate called after throwing an instance of 'c10::Error' step 3",
"Setting num_steps to 300, learning rate 1e-5",
"Warmup steps: 300, peak lr: 1e-5, min lr: 1e-6",
"scheduler: cosine, warmup 300 steps, lr 1e-5 -> 1e-6",
"Max steps: 300, eval every 50 steps, loss: cross entropy",
"model.layers.3.loss_head.weight: torch.Size([300, 2])",
"step 3/7: pulling image layer 12/30",
"Job step 3 of 7 completed in 12.1 s",
"slurmstepd: error: *** STEP 300.0 ON node-3 CANCELLED AT 2025-06-01T10:11:12 ***",
"srun: Step 300.0 created",
"gradient accumulation steps: 8, micro batch: 2, loss averaging: token",
"1/300 [..............................] - ETA: 5:12",
"300/300 files copied","Progress: 300/1000 (30%)",
"TokenizerWarning: 12 tokens/s dropped at step 3",
"OOM at step 300: tried to allocate 2.00 GiB",
"Losses: 2 nodes lost at step 3",
"Connection loss: 3 retries",
"time=2025-06-01T10:11:12 level=info msg=\"pulled image\" step=3 duration=12.1",
"Loss function: cross entropy; 3 steps",
"best_loss=0.41 best_step=1200",
]
# fmt: on


def told(reading: ParsedMetrics | None) -> dict[str, Any]:
    if reading is None:
        return {}
    values = {field.name: getattr(reading, field.name) for field in fields(reading)}
    return {name: value for name, value in values.items() if value is not None and value is not False}


@pytest.mark.parametrize(("line", "wanted"), TOLD)
def test_what_trainers_print_tells_what_it_should(line: str, wanted: dict[str, Any] | None) -> None:
    found = told(parse(line))
    if wanted is None:
        assert found == {}
    for name, value in (wanted or {}).items():
        if value is ...:
            assert name in found, found
        else:
            assert found.get(name) == (pytest.approx(value) if isinstance(value, float) else value), found


@pytest.mark.parametrize("line", NONE)
def test_what_stands_between_tells_nothing(line: str) -> None:
    assert told(parse(line)) == {}


def test_a_log_of_many_ranks_and_of_everything_between_is_one_curve() -> None:
    fold = ProgressFold()
    stamp_ns = 1_748_772_672 * 10**9
    for step in range(1, 41):
        for node in range(2):
            for rank in (2 * node, 2 * node + 1):
                text = (
                    f"[rank{rank}]:[titan] 2025-06-09 10:11:12,345 - root - INFO - \x1b[31mstep: {step:2}  "
                    f"\x1b[32mloss: {4 - step / 20:7.4f}  \x1b[38;2;180;60;0mgrad_norm: {1 + rank / 100:7.4f}  "
                    f"\x1b[34mtps: {7000 + rank:,}\x1b[39m"
                )
                fold.add([LogLine(stamp_ns + rank, text, f"node-{node}", None)])
            noise = NONE[(7 * step + node) % len(NONE)]
            fold.add([LogLine(stamp_ns + 9, noise, f"node-{node}", None)])
        stamp_ns += 5 * 10**9
    snapshot = fold.snapshot()
    assert snapshot.stream == "node-0[0]"
    assert [step for step, _ in snapshot.loss_by_step] == list(range(1, 41))
    assert [loss for _, loss in snapshot.loss_by_step] == pytest.approx([4 - n / 20 for n in range(1, 41)])
    assert set(snapshot.grad_norm_series.values) == {1.0}
    assert set(snapshot.tokens_per_s_series.values) == {7000.0}
    assert len(snapshot.eval_loss_series) == 0
    assert {view.key for view in snapshot.streams} == {f"node-{rank // 2}[{rank}]" for rank in range(4)}
