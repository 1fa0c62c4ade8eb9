"""Excerpts as the trainers print them, version by version, and output that only surrounds training."""

import pytest

from tui.analysis.progress.fold import parse

TOLD = [
    # ms-swift, LLaMA-Factory, Axolotl, TRL
    ("{'loss': 1.8324, 'token_acc': 0.612, 'grad_norm': 1.21, 'learning_rate': 1e-05, 'memory(GiB)': 20.14, 'train_speed(iter/s)': 0.25, 'epoch': 0.1, 'global_step/max_steps': '10/100', 'percentage': '10.00%', 'elapsed_time': '1m 2s', 'remaining_time': '9m 20s'}",
     {"loss": 1.8324, "grad_norm": 1.21, "learning_rate": 1e-5, "step": 10, "total_steps": 100}),
    ("[INFO|2025-01-01 00:00:00] llamafactory.train.callbacks:143 >> {'loss': 1.1021, 'learning_rate': 5.0000e-05, 'epoch': 0.10, 'throughput': 1234.56}",
     {"loss": 1.1021, "learning_rate": 5e-5, "tokens_per_s": 1234.56}),
    ("{'loss': 1.1, 'grad_norm': 0.5, 'learning_rate': 2e-05, 'memory/max_active (GiB)': 12.3, 'tokens_per_second_per_gpu': 1234.0, 'epoch': 0.01}",
     {"loss": 1.1, "tokens_per_s": 1234.0}),
    ("{'loss': '0.6931', 'grad_norm': '3.2', 'learning_rate': '5e-07', 'rewards/chosen': '0.01', 'rewards/accuracies': '0.5', 'logps/chosen': '-312.4', 'epoch': '0.02'}",
     {"loss": 0.6931, "grad_norm": 3.2}),
    ("{'loss': 0.0, 'grad_norm': 0.12, 'learning_rate': 1e-06, 'num_tokens': 10240.0, 'completions/mean_length': 210.5, 'reward': 0.31, 'kl': 0.0, 'epoch': 0.0}",
     {"loss": 0.0, "grad_norm": 0.12}),
    ("{'eps': 4, 'objective/kl': 12.1, 'loss/policy_avg': -0.021, 'loss/value_avg': 0.3, 'lr': 3e-06, 'episode': 512, 'epoch': 0.1}",
     {"loss": -0.021, "learning_rate": 3e-6}),
    ("\x1b[36m(RayTrainWorker pid=4120, ip=10.0.0.4)\x1b[0m {'loss': 2.01, 'grad_norm': 1.0, 'learning_rate': 0.0001, 'epoch': 0.5}",
     {"loss": 2.01}),
    ("{'eval_loss': 1.0512, 'eval_model_preparation_time': 0.0041, 'eval_runtime': 12.3, 'eval_samples_per_second': 81.0, 'epoch': 1.0}",
     {"eval_loss": 1.0512, "epoch": 1.0}),
    # tqdm, diffusers, OpenRLHF
    ("Steps:  31%|###1      | 310/1000 [12:03<26:50,  2.33s/it, lr=0.0001, step_loss=0.0912]",
     {"step": 310, "total_steps": 1000, "loss": 0.0912, "learning_rate": 1e-4, "step_time_s": 2.33}),
    ("Train step of epoch [1/1]:  10%|█         | 10/100 [00:10<01:30,  1.01s/it, gpt_loss=1.23, loss_mean=1.3, lr=9e-6]",
     {"loss": 1.23, "epoch_step": 10, "epoch_steps": 100}),
    ("Training loss 0.345:  45%|████▌     | 450/1000 [00:10<00:12, 44.1it/s]", {"step": 450, "total_steps": 1000}),
    ("Epochs:  30%|███       | 3/10 [00:10<00:20,  3.00s/epoch, loss=0.4]", {"epoch": 3.0, "total_epochs": 10.0, "loss": 0.4}),
    ("Train:  45%|████▌     | 45000/100000 [00:12<00:14, 3821.11samples/s, loss=0.9]", {"loss": 0.9}),
    # Lightning
    ("Epoch 0:  10%|█         | 10/100 [00:01<00:09,  9.90it/s, v_num=0, train_loss_step=2.300, train_loss_epoch=2.5]",
     {"step": 10, "epoch_steps": 100, "loss": 2.3}),
    ("\rEpoch 1: 100%|██████████| 100/100 [00:10<00:00,  9.91it/s, v_num=3, train_loss=0.51, val_loss=0.62]",
     {"step": 200, "loss": 0.51, "eval_loss": 0.62}),
    # Keras, quietly
    ("1875/1875 - 5s - 3ms/step - accuracy: 0.9155 - loss: 0.2912 - val_accuracy: 0.95 - val_loss: 0.1301",
     {"loss": 0.2912, "eval_loss": 0.1301, "epoch_step": 1875, "step_time_s": 0.003}),
    # Megatron-LM and Megatron-DeepSpeed
    (" [2025-02-01 12:00:00.123456] iteration        5/     100 | consumed samples:           80 | elapsed time per iteration (ms): 1234.5 | throughput per GPU (TFLOP/s/GPU): 123.4 | learning rate: 1.500000E-04 | global batch size:    16 | lm loss: 1.081234E+01 | loss scale: 1.0 | grad norm: 5.412 | number of skipped iterations:   0 | number of nan iterations:   0 |",
     {"step": 5, "total_steps": 100, "loss": 10.81234, "grad_norm": 5.412, "step_time_s": 1.2345}),
    ("[default7]: iteration       10/  500000 | consumed samples: 10240 | consumed tokens: 20971520 | elapsed time per iteration (s): 12.52 | learning rate: 1.2E-05 | global batch size:  1024 | lm loss: 9.1E+00 | grad norm: 2.3 | samples per second: 81.8 | TFLOPs: 110.2 |",
     {"step": 10, "loss": 9.1, "step_time_s": 12.52, "rank": 7}),
    (" validation loss at iteration 1000 on validation set | lm loss value: 1.050000E+00 | lm loss PPL: 2.8E+00 |",
     {"step": 1000, "eval_loss": 1.05}),
    # torchtitan, old and new
    ("[rank0]:2024-08-01 12:00:00,123 - root - INFO - \x1b[36mstep: 10  \x1b[32mloss:  7.9021  \x1b[33mmemory: 40.14GiB(50.70%)  \x1b[34mwps: 2,345  \x1b[35mmfu: 31.20%\x1b[39m",
     {"step": 10, "loss": 7.9021, "tokens_per_s": 2345.0, "rank": 0}),
    # verl
    ("(TaskRunner pid=1234) step:1 - training/global_step:1 - training/epoch:0 - critic/score/mean:0.1 - actor/pg_loss:-0.002 - actor/grad_norm:0.3 - perf/throughput:812.1 - timing_s/step:61.2",
     {"step": 1, "loss": -0.002, "grad_norm": 0.3, "tokens_per_s": 812.1, "step_time_s": 61.2}),
    ("step:100 - val/loss:1.05", {"step": 100, "eval_loss": 1.05}),
    # DeepSpeed-Chat
    ("Epoch: 0 | Step: 10 | PPO Epoch: 1 | Actor Loss: 0.101 | Critic Loss: 0.22 | Unsupervised Loss: 0.0",
     {"step": 10, "loss": 0.101}),
    # fairseq, PaddleNLP, litgpt, OpenMMLab, detectron2, timm, the PyTorch examples
    ("2023-01-01 12:00:00 | INFO | train_inner | epoch 001:     10 / 1000 loss=9.912, nll_loss=9.5, ppl=970.1, wps=12345.6, ups=3.1, wpb=4096, bsz=128, num_updates=10, lr=1e-05, gnorm=2.1, loss_scale=128, train_wall=2, wall=20",
     {"step": 10, "loss": 9.912, "learning_rate": 1e-5, "grad_norm": 2.1}),
    ("[2024-01-01 12:00:00,123] [    INFO] - loss: 1.2345, learning_rate: 1e-05, global_step: 10, current_memory_allocated: 12.1, interval_runtime: 1.2, interval_samples_per_second: 3.4",
     {"step": 10, "loss": 1.2345, "learning_rate": 1e-5}),
    ("Epoch 1 | iter 10 step 5 | loss train: 1.234, val: n/a | iter time: 123.45 ms (step) remaining time: 0:10:00",
     {"loss": 1.234}),
    ("2023/01/01 12:00:00 - mmengine - INFO - Epoch(train)   [2][ 50/1000]  lr: 1.0000e-04  eta: 1:00:00  time: 0.5012  data_time: 0.1  memory: 1234  loss: 1.2301  loss_cls: 0.5",
     {"step": 1050, "loss": 1.2301, "learning_rate": 1e-4}),
    ("11/21 12:00:00 - mmengine - INFO - Iter(train) [ 50/1000]  lr: 1.0e-04  loss: 1.2301", {"step": 50, "total_steps": 1000, "loss": 1.2301}),
    ("[01/01 12:00:00 d2.utils.events]:  eta: 1:00:00  iter: 19  total_loss: 1.234  loss_cls: 0.9  time: 0.2  data_time: 0.01  lr: 0.0002  max_mem: 1234M",
     {"step": 19, "loss": 1.234, "learning_rate": 2e-4}),
    ("Train: 0 [  50/1251 (  4%)]  Loss: 6.931 (6.942)  Time: 0.512s, 1024.00/s  (0.512s, 1024.00/s)  LR: 1.000e-05  Data: 0.010 (0.010)",
     {"step": 50, "loss": 6.931, "learning_rate": 1e-5}),
    ("Epoch: [1][  10/5005]\tTime  0.512 ( 0.600)\tData  0.010 ( 0.100)\tLoss 6.9012e+00 (6.9312e+00)\tAcc@1   0.00 (  0.10)",
     {"step": 5015, "loss": 6.9012}),
    # what people write themselves
    ("INFO:__main__:step: 100, train_loss: 0.512", {"step": 100, "loss": 0.512}),
    ("2026-01-01 12:00:00.123 | INFO     | __main__:train:88 - step 100/2000 | loss=0.512 | lr=1.00e-04 | grad_norm=0.91 | 12,345 tok/s",
     {"step": 100, "total_steps": 2000, "loss": 0.512, "learning_rate": 1e-4, "grad_norm": 0.91, "tokens_per_s": 12345.0}),
    ("0: step=100 loss=0.5", {"step": 100, "loss": 0.5, "rank": 0}),
    ("[1,3]<stdout>:step=100 loss=0.5", {"step": 100, "loss": 0.5, "rank": 3}),
    ("Iteration 100 - Loss: 0.5", {"step": 100, "loss": 0.5}),
    ("Epoch 1/10 - Loss: 0.5", {"epoch": 1.0, "loss": 0.5}),
    ("[Epoch 1] [Batch 10/200] [Loss: 0.5]", {"step": 10, "epoch_steps": 200, "loss": 0.5}),
    ("level=info ts=2026-01-01T12:00:00Z msg=\"train\" step=10 loss=2.0 lr=1e-5", {"step": 10, "loss": 2.0}),
    ("Step 100: loss = 0.5, accuracy = 0.9", {"step": 100, "loss": 0.5}),
    # JSON
    ('{ "step": 10, "loss": 2.0 }', {"step": 10, "loss": 2.0}),
    ('{"timestamp": "2026-01-01T12:00:00Z", "level": "INFO", "message": "step=10 loss=2.0"}', {"step": 10, "loss": 2.0}),
    ('{"train/loss": 2.0, "trainer/global_step": 10, "train/learning_rate": 1e-05}', {"step": 10, "loss": 2.0, "learning_rate": 1e-5}),
    # announcements
    ("[INFO|trainer.py:2418] >>   Total optimization steps = 9,000", {"total_steps": 9000}),
    ("\\        /    Data Parallel GPUs = 1 | Total steps = 60", {"total_steps": 60}),
    # checkpoints
    ("Epoch 00003: val_loss improved from 0.51 to 0.42, saving model to best.keras", {"checkpoint": ""}),
    ("Epoch 0, global step 100: 'val_loss' reached 0.50000 (best 0.50000), saving model to '/mnt/ckpts/epoch=0-step=100.ckpt' as top 1", {"checkpoint": "epoch=0-step=100.ckpt"}),
    ("Epoch 0, global step 99: 'loss' reached 1.2 (best 1.2), saving model to '/ckpts/model--reduced_train_loss=1.20-epoch=0.ckpt' as top 1",
     {"checkpoint": "model--reduced_train_loss=1.20-epoch=0.ckpt"}),
    ("Saving the model to /mnt/ckpts/step_500-unsharded", {"checkpoint": "step_500-unsharded"}),
    ("Async checkpoint save for step 100 (/mnt/ckpts/step_100) finalized successfully.", {"checkpoint": "step_100"}),
    # a dictionary with its step beside it, and numbers as torch and numpy print them
    ("{'loss': 0.912, 'lr': 1e-5} step 299/600", {"step": 299, "total_steps": 600, "loss": 0.912}),
    ("step 299/600 | {'loss': 1.2, 'grad_norm': 0.3}", {"step": 299, "total_steps": 600, "grad_norm": 0.3}),
    ('Step 299/600 {"loss": 1.2}', {"step": 299, "total_steps": 600, "loss": 1.2}),
    ("{'loss': 1.2, 'grad_norm': tensor(0.5123, device='cuda:0'), 'learning_rate': np.float64(1e-05), 'epoch': 0.2}",
     {"grad_norm": 0.5123, "learning_rate": 1e-5}),
    ("{'eval_math_loss': 1.05, 'eval_math_runtime': 12.3, 'epoch': 1.0}", {"eval_loss": 1.05}),
    # the Trainer's losses printed over its bar, in one line of a pseudo-terminal
    ("\r  2%|▏         | 19/1000 [01:35<1:21:40,  5.00s/it]\r  2%|▏         | 20/1000 [01:40<1:21:40,  5.00s/it]\r" + 60 * " "
     + "\r{'loss': 1.51, 'grad_norm': 0.8, 'learning_rate': 1e-4, 'epoch': 0.02}",
     {"step": 20, "total_steps": 1000, "loss": 1.51, "epoch": 0.02}),
    ("[rank3]: \r  2%|▏         | 20/1000 [01:40<1:21:40,  5.00s/it]\r    ", {"step": 20, "rank": 3}),
    # ranks behind a time, and Ray's processes
    ("2026-01-02 03:04:05,678 - INFO - [rank1]: step=4 loss=0.9", {"step": 4, "rank": 1}),
    ("(RayTrainWorker pid=123, ip=10.0.0.1) step=4 loss=0.9", {"step": 4, "rank": 123}),
    # Lightning, a notebook's table, Ultralytics
    ("Epoch 3:  45%|####5     | 703/1563 [00:41<00:50, 16.96it/s, v_num=kx9g, train/loss_step=0.345, val/loss=0.51, train/loss_epoch=0.4]",
     {"loss": 0.345, "eval_loss": 0.51, "epoch_step": 703}),
    (" [ 40/120 01:20 < 02:44, 0.49 it/s, Epoch 0.33/1]", {"step": 40, "total_steps": 120, "epoch": 0.33}),
    ("      1/100      3.27G      1.123      2.871      1.321         38        640:  50%|█████     | 40/80 [00:02<00:00,  3.41it/s]",
     {"step": 40, "total_steps": 8000, "total_epochs": 100}),
    # Keras that does not know how long an epoch is
    ("45/Unknown 12s 200ms/step - loss: 0.51", {"epoch_step": 45, "loss": 0.51, "step_time_s": 0.2}),
    # 2025 and 2026: nanochat, Nanotron, NeMo, SkyRL, MaxText, mlx-lm, prime-rl, OpenRLHF
    ("step 00120/21400 (0.56%) | loss: 6.123456 | grad norm: 0.8213 | lrm: 1.00 | dt: 345.67ms | tok/sec: 1,516,800 | mfu: 47.50 | total time: 0.63m",
     {"step": 120, "total_steps": 21400, "loss": 6.123456, "grad_norm": 0.8213, "tokens_per_s": 1516800.0}),
    ("Step 00120/00700 | Training loss: 1.123456| lrm: 0.500000| num_tokens: 12,345", {"step": 120, "total_steps": 700, "loss": 1.123456}),
    ("Step 12/467 | Average reward: 0.2512 | Average sequence length: 233.10", {"step": 12, "total_steps": 467}),
    ("10/17/2025 16:31:56 [INFO|DP=0|PP=0|TP=0]: iteration: 3281 / 378950 | consumed_tokens: 85.8G | elapsed_time_per_iteration_ms: 11.5K | tokens_per_sec: 22.8K | tokens_per_sec_per_gpu: 11.4K | global_batch_size: 64 | lm_loss: 2.38 | lr: 1e-05 | model_tflops_per_gpu: 38.3 | grad_norm: 1.25",
     {"step": 3281, "total_steps": 378950, "loss": 2.38, "grad_norm": 1.25, "tokens_per_s": 22800.0}),
    ("2026-08-10 15:48:59 | INFO | root | step 13 | epoch 0 | loss 0.6407 | grad_norm 1.1754 | lr 1.00e-05 | mem 31.55 GiB | tps 6574.51(821.81/gpu) | num_label_tokens 26779",
     {"step": 13, "loss": 0.6407, "grad_norm": 1.1754, "tokens_per_s": 6574.51}),
    ("Training epoch 0, iteration 120/149 | lr: 3e-05 | global_batch_size: 1 | global_step: 120 | reduced_train_loss: 1.233 | train_step_timing in s: 0.03146 | val_loss: 4.106",
     {"loss": 1.233, "eval_loss": 4.106, "step_time_s": 0.03146}),
    ("model.py:660 - step 1: {'train/loss': 0.00062, 'train/pg_loss': 0.0, 'train/entropy_loss': 0.0746, 'train/kl_loss': 0.6256, 'train/grad_norm': 0.0376, 'train/lr-pg_0': 1e-06, 'train/step': 1}",
     {"step": 1, "loss": 0.00062, "grad_norm": 0.0376}),
    ("completed step: 9, seconds: 5.667, TFLOP/s/device: 134.924, Tokens/s/device: 8672.758, total_weights: 196608, loss: 10.374",
     {"step": 9, "loss": 10.374, "tokens_per_s": 8672.758}),
    ("Iter 100: Train loss 1.111, Learning Rate 1.000e-05, It/sec 0.841, Tokens/sec 80.020, Trained Tokens 9979, Peak mem 9.707 GB",
     {"step": 100, "loss": 1.111, "learning_rate": 1e-5, "tokens_per_s": 80.02}),
    ("03:04:05    INFO Step 12 | Time: 61.20s | Loss: 0.0123 | Entropy: 0.3123 | Mismatch KL: 0.0012 | Grad. Norm: 0.0812 | LR: 1.00e-06 | Throughput: 12345 tokens/s | MFU: 31.2%",
     {"step": 12, "loss": 0.0123, "learning_rate": 1e-6, "tokens_per_s": 12345.0}),
    ("(PPOTrainer pid=123) ✨Global step 12: {'policy_loss': 0.0123, 'actor_lr': 9e-07, 'kl': 0.01, 'reward': 0.31}", {"step": 12, "loss": 0.0123}),
    ("Episode [2/3]:  10%|█         | 10/100 [10:10<91:30, 61.01s/it]", {"step": 110, "total_steps": 300, "step_time_s": 61.01}),
    # headings with values below them: Composer, OLMo, NeMo RL
    ("[epoch=1/3][batch=120/4800]:", {"step": 120, "total_steps": 4800}),
    ("2026-08-08 12:01:00 INFO [olmo_core.train.callbacks.console_logger:68] [step=100/2,000,epoch=0,eta=5h11m]", {"step": 100, "total_steps": 2000}),
    ("    train/CE loss=2.812", {"loss": 2.812}),
    ("│ training_iteration                 3 │", {"step": 3}),
    ("(TorchTrainer pid=12) │ train_loss                   0.30025 │", {"loss": 0.30025}),
    ("|    total_timesteps      | 20480       |", {"step": 20480}),
    ("|    loss                 | 0.0123      |", {"loss": 0.0123}),
    ("    eval/lm/c4_en-validation/CE loss=3.012", {"eval_loss": 3.012}),
    ("    optim/total grad norm=0.512", {"grad_norm": 0.512}),
    ("    optim/LR (group 0)=0.0003", {"learning_rate": 0.0003}),
    ("    throughput/device/TPS=12,345", {"tokens_per_s": 12345.0}),
    ("    - E2E (Tokens/sec/gpu): 812.31", {"tokens_per_s": 812.31}),
    ("\t Train loss/train/total: 2.3012", {"loss": 2.3012}),
    ("\t Train lr-DecoupledAdamW/group0: 0.0001", {"learning_rate": 1e-4}),
    ("\t Eval metrics/eval/LanguageCrossEntropy: 2.1", {"eval_loss": 2.1}),
    ("2025-01-01 12:00:00\tnode-0:0\tolmo.train:966\tINFO\t[step=120/739328,epoch=0]\n    optim/total_grad_norm=0.3\n"
     "    train/CrossEntropyLoss=2.812\n    train/Perplexity=16.6\n    throughput/device/tokens_per_second=12,345",
     {"step": 120, "total_steps": 739328, "loss": 2.812, "grad_norm": 0.3, "tokens_per_s": 12345.0}),
    ("========================= Step 12/500 =========================", {"step": 12, "total_steps": 500}),
    ("  • Loss: 0.0123", {"loss": 0.0123}),
    # whose loss it is, said by the heading of the line or by its name alone
    ("2022-11-02 10:01:02 | INFO | valid | epoch 003 | valid on 'valid' subset | loss 4.1 | ppl 17.1 | num_updates 3300 | best_loss 4.1",
     {"step": 3300, "eval_loss": 4.1}),
    ("[Eval] step 100: loss=0.5", {"step": 100, "eval_loss": 0.5}),
    ("Validation loss: 0.512", {"eval_loss": 0.512}),
    ("Test set: Average loss: 0.0512, Accuracy: 9812/10000 (98%)", {"eval_loss": 0.0512}),
    # speed records
    ("step:1201/1770 train_time:120221ms step_avg:100.1ms", {"step": 1201, "total_steps": 1770, "step_time_s": 0.1001}),
    ("iter 100: loss 2.3012, time 120.12ms, mfu 41.20%", {"loss": 2.3012, "step_time_s": 0.12012}),
    ("[Step 100] loss=0.50 | ppl=1.65 | throughput=12345 tokens/s", {"tokens_per_s": 12345.0}),
    ("step=100, train/loss=0.5, train/lr=1e-4, perf/tokens_per_sec=1234", {"loss": 0.5, "tokens_per_s": 1234.0}),
    ("12:00:00    INFO [trainer] Step 10 | Time: 12.31s | Loss: 0.0012 | Entropy: 0.41 | Grad. Norm: 0.1231 | LR: 1.00e-06 | Throughput: 12345 tokens/s",
     {"step": 10, "loss": 0.0012, "learning_rate": 1e-6, "tokens_per_s": 12345.0}),
    # counted in brackets and in round numbers: tutorials of PyTorch, CLU, Levanter
    ("[1,  2000] loss: 2.173", {"epoch": 1.0, "loss": 2.173}),
    ("loss: 1.231452  [12864/60000]", {"loss": 1.231452}),
    ("I0601 10:00:00.123456 140012 logging_writer.py:48] [120] learning_rate=0.000121, loss=4.312, steps_per_sec=3.2",
     {"step": 120, "loss": 4.312, "learning_rate": 0.000121}),
    ("Progress on:train 9.21kit/10.0kit rate:2.0it/s remaining:06:12 elapsed:1:12:02 postfix:loss=2.31",
     {"step": 9210, "total_steps": 10000, "loss": 2.31, "step_time_s": 0.5}),
    ("INFO:__main__:Model saved to /mnt/ckpts/model.pt", {"checkpoint": "model.pt"}),
    # gradient boosting, translation, speech, robotics, reinforcement learning
    ("[3]\ttrain-rmse:1.23456\teval-rmse:1.34567", {"step": 3, "loss": 1.23456, "eval_loss": 1.34567}),
    ("[100]\tvalidation_0-logloss:0.41230\tvalidation_1-logloss:0.43112", {"step": 100, "eval_loss": 0.4123}),
    ("[50]\ttraining's binary_logloss: 0.312\tvalid_1's binary_logloss: 0.345", {"step": 50, "loss": 0.312, "eval_loss": 0.345}),
    ("100:\tlearn: 0.3210000\ttest: 0.331\tbest: 0.331 (100)\ttotal: 1.2s\tremaining: 10.8s", {"step": 100, "loss": 0.321, "eval_loss": 0.331}),
    ("[2024-05-01 12:00:00] Ep. 3 : Up. 12000 : Sen. 1,234,567 : Cost 2.31234567 * 12,345,678 @ 12,345 after 123,456,789 : Time 123.45s : 98765.43 words/s : L.r. 3.0000e-04",
     {"step": 12000, "epoch": 3.0, "loss": 2.31234567, "learning_rate": 3e-4, "tokens_per_s": 98765.43}),
    ("2024-05-01 12:00:00,123 epoch 3 - iter 120/1204 - loss 0.123 - time (sec): 12.31 - samples/sec: 412.31 - lr: 0.000012",
     {"step": 120, "loss": 0.123, "samples_per_s": 412.31, "step_time_s": None}),
    (" --> STEP: 120/1204 -- GLOBAL_STEP: 12000", {"step": 12000}),
    ("     | > loss: 0.31234  (0.33123)", {"loss": 0.31234}),
    ("INFO 2024-05-01 12:00:00 train.py:385 step:1K smpl:8K ep:13 epoch:0.31 loss:0.412 grdn:3.412 lr:1.0e-04 updt_s:0.412", {"step": 1000, "epoch": 0.31, "loss": 0.412}),
    ("                       Learning iteration 120/1500                       ", {"step": 120, "total_steps": 1500}),
    ("global_step=12288, episodic_return=21.0", {"step": 12288}),
    ("Eval @ step 1200: loss=1.21 ppl=3.35", {"step": 1200, "eval_loss": 1.21, "loss": None}),
    ("Step 1.2k/10k | loss 2.31", {"step": 1200, "total_steps": 10000, "loss": 2.31}),
]  # fmt: skip


@pytest.mark.parametrize(("line", "expected"), TOLD, ids=[line[:40] for line, _ in TOLD])
def test_a_trainers_line_is_read(line, expected):
    reading = parse(line)
    assert reading is not None
    found = {name: getattr(reading, name) for name in expected}
    assert found == pytest.approx(expected) if "checkpoint" not in expected else found == expected


SURROUNDINGS = """
Collecting torch==2.7.0
  Downloading torch-2.7.0-cp311-cp311-manylinux_2_28_x86_64.whl (865.2 MB)
     ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━ 865.2/865.2 MB 30.5 MB/s eta 0:00:00
Successfully installed torch-2.7.0 triton-3.3.0
 => [internal] load build definition from Dockerfile
Step 4/12 : RUN pip install -r requirements.txt
100%|██████████| 170498071/170498071 [00:13<00:00, 12978384.51it/s]
model.safetensors:  45%|████▌     | 2.21G/4.90G [00:12<00:14, 181MB/s]
Fetching 30 files:  10%|█         | 3/30 [00:12<01:48,  4.02s/it]
Resolving data files: 100%|██████████| 44/44 [00:00<00:00, 312.41it/s]
Map (num_proc=8):  45%|████▌     | 45000/100000 [00:12<00:14, 3821.11 examples/s]
Running tokenizer on dataset:  12%|█▏        | 12/100 [00:01<00:10,  8.11it/s]
Applying chat template to train dataset:  50%|█████     | 10/20 [00:02<00:02,  4.41it/s]
Capturing CUDA graph shapes:  50%|█████     | 10/20 [00:02<00:02,  4.41it/s]
Loading safetensors checkpoint shards:  25% Completed | 1/4 [00:00<00:02,  1.31it/s]
Adding EOS to train dataset: 100%|██████████| 1000/1000 [00:00<00:00, 12000.1 examples/s]
Saving the dataset (1/1 shards): 100%|██████████| 1000/1000 [00:00<00:00, 12000.1 examples/s]
Sanity Checking DataLoader 0: 100%|██████████| 2/2 [00:00<00:00,  5.10it/s]
Processed prompts:  50%|█████     | 10/20 [00:02<00:02,  4.41it/s, est. speed input: 120.1 toks/s, output: 310.2 toks/s]
NCCL INFO Channel 00/16 : 0[0] -> 1[1] via P2P/CUMEM/read
NCCL INFO Ring 00 : 7 -> 0 -> 1 comm 0x5581 nRanks 32
NCCL WARN NET/IB : Got completion from peer 10.0.0.1 with status=12 opcode=0 len=0 vendor err 129
Namespace(steps=1000, lr=0.001, batch=32, grad_norm=1.0, loss='mse')
TrainingArguments(learning_rate=2e-05, max_steps=9000, logging_steps=10, max_grad_norm=1.0)
StepLR(step_size=30, step=10, lr=0.1)
{'optimizer': {'lr': 0.0002, 'betas': [0.9, 0.95]}, 'trainer': {'max_steps': 100, 'grad_clip': 1.0}}
{"learning_rate": 2e-05, "max_steps": 9000, "step": 10, "lr": 0.1}
  learning_rate: 2.0e-05
  max_steps: 9000
  loss_fn: torch.nn.CrossEntropyLoss
lr_scheduler: {type: step, step: 10, lr: 0.001}
GPU 0 step 3 of the initialisation
Traceback (most recent call last):
  File "/app/train.py", line 214, in training_step
    loss = self.compute_loss(model, inputs, step=10)
    total_loss += loss.item() / 10  # step 5
ValueError: loss is not finite at step 40
RuntimeError: The size of tensor a (128) must match the size of tensor b (64) at non-singleton dimension 1
W0101 12:00:00.000000 123 torch/distributed/run.py:792] Setting OMP_NUM_THREADS environment variable for each process to be 1
trainable params: 41,943,040 || all params: 8,072,204,288 || trainable%: 0.5196
Epoch 3/10 started
The model was trained for 3 epochs with a loss of 0.5
wandb: Run summary:
wandb:         train/loss 0.512
wandb: train/global_step 100
***** Running training *****
  Num examples = 1,000
  Instantaneous batch size per device = 4
warmup_steps=100, eval_steps=500, save_steps=500
[rank3]: dataloader: prefetched 4120 batches, queue depth 8
GET /health 200 step
wandb: View run at: https://wandb.ai/acme/proj/runs/abc123?step=10&loss=5
GET /metrics?step=10&loss=0.5 HTTP/1.1 200
packet loss 0.5% at step 3
                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100%|██████████| 4/4 [00:01<00:00,  3.3it/s]
Loading pipeline components...: 100%|██████████| 7/7 [00:01<00:00,  4.12it/s]
Truncating train dataset: 100%|██████████| 1000/1000 [00:00<00:00, 120001.1 examples/s]
Rollout:  50%|█████     | 5/10 [00:11<00:11,  2.12s/it]
[2025-01-01 12:00:00,000] [INFO] [config.py:1003:print]   loss_scale ................... 1.0
  train_iters ............................. 9000
{'train_batch_size': 64, 'steps_per_print': 10, 'fp16': {'enabled': True, 'loss_scale': 0}}
wandb:     train/loss 0.512
| learning_rate | 2e-5 |
AdamW ( Parameter Group 0 betas: (0.9, 0.999) lr: 0.001 )
Continuing training from epoch 1 step 300
EarlyStopping counter: 1 out of 5
commit 4f1d2c3b fix loss at step 100
[3/5] c++ -MMD -MF fused_loss.o.d -O3 step.cpp
INFO 11-21 12:00:00 metrics.py:455] Avg prompt throughput: 120.1 tokens/s, Avg generation throughput: 310.2 tokens/s, Running: 3 reqs
Scheduler: step 100 lr 0.0001
==================== Step 4: configure ====================
    train/precision=16
Progress on:eval 12it/81it rate:4.1it/s remaining:00:17 elapsed:00:03 postfix:loss=2.4
I0601 10:00:00.123456 140012 logging_writer.py:64] [0] Got texts: {'config': 'loss=4'}.
Saving checkpoints every 500 steps
Saving a checkpoint every 10 minutes to /mnt/ckpts
Saving checkpoints to /mnt/ckpts
The checkpoint was saved by an older version of this library
Only the last 3 saved checkpoints are kept
Saving memory by activation checkpointing
    train/PPL=511.9
│ checkpoint_dir_name   checkpoint_000002 │
│ time_this_iter_s                0.31    │
|    n_updates            | 120         |
|    value_loss           | 12.1        |
| train/                  |             |
    throughput/total tokens=12,345
  • Avg Reward: 0.7500
  • Mean Generation Length: 412.0000
  • Total step time: 20.00s
rollout 12: {'rollout/response_lengths': 812.1, 'rollout/raw_reward': 0.31}
reward model step 3/4: loading weights
the reward is 5 at step 3/4
--reward-steps 3/4 reward=5
response: "At epoch 3 the loss: 0.5 was reached"
Answer: step 1: 3 + 4 = 7. step 2: loss = 7 - 2 = 5
[rollout 3] completion: step 5/10 loss: 0.5
<think> step 3: the loss = 2.0 </think>
│ │ Given that loss is 3.2  │  the step 40 of epoch 2 │                   17.00 │ │
""".strip().splitlines()


@pytest.mark.parametrize("line", SURROUNDINGS)
@pytest.mark.parametrize(
    "dress", ["{}", "\x1b[32m{}\x1b[0m", "[rank0]: {}", "\r{}"], ids=["plain", "ansi", "rank", "cr"]
)
def test_what_surrounds_training_tells_nothing(line, dress):
    assert parse(dress.format(line)) is None
