"""Fine-tune a causal language model with LoRA on the questions and answers in data.jsonl.

The environment variables MODEL_ID and EPOCHS set the model and the number of epochs. Checkpoints contain
only the adapter, so they are small and can be deployed together on one base model. A job that is resumed
(``bt-tui resume``) continues from the checkpoint that the platform has loaded for it.
"""

import os
from pathlib import Path

import torch
from datasets import Dataset, load_dataset
from peft import LoraConfig, get_peft_model
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    DataCollatorForSeq2Seq,
    PreTrainedTokenizerBase,
    Trainer,
    TrainingArguments,
)

HERE = Path(__file__).parent
LORA_RANK = 16
MAX_TOKENS = 512
IGNORED_LABEL = -100  # the label of tokens that do not count in the loss


def tokenized_examples(tokenizer: PreTrainedTokenizerBase) -> Dataset:
    """Tokenize the examples; only the tokens of the answers count in the loss."""

    def tokenize(example: dict[str, str]) -> dict[str, list[int]]:
        question = tokenizer(f"Question: {example['prompt']}\nAnswer: ")["input_ids"]
        answer = tokenizer(example["answer"] + tokenizer.eos_token, add_special_tokens=False)["input_ids"]
        tokens = (question + answer)[:MAX_TOKENS]
        labels = ([IGNORED_LABEL] * len(question) + answer)[:MAX_TOKENS]
        return {"input_ids": tokens, "attention_mask": [1] * len(tokens), "labels": labels}

    examples = load_dataset("json", data_files=str(HERE / "data.jsonl"), split="train")
    return examples.map(tokenize, remove_columns=examples.column_names)


def newest_loaded_checkpoint() -> str | None:
    """Return the newest checkpoint that was loaded for this job, with its optimizer and step."""
    root = os.environ.get("BT_LOAD_CHECKPOINT_DIR")
    folders = [state.parent for state in Path(root).rglob("trainer_state.json")] if root else []
    return str(max(folders, key=lambda folder: int(folder.name.rpartition("-")[2]))) if folders else None


def main() -> None:
    """Train, and save the adapter in the checkpoint directory."""
    model_id = os.environ.get("MODEL_ID", "Qwen/Qwen2.5-0.5B-Instruct")
    tokenizer = AutoTokenizer.from_pretrained(model_id)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    on_gpu = torch.cuda.is_available()
    model = AutoModelForCausalLM.from_pretrained(model_id, dtype=torch.bfloat16 if on_gpu else torch.float32)
    model = get_peft_model(
        model,
        LoraConfig(r=LORA_RANK, lora_alpha=2 * LORA_RANK, target_modules="all-linear", task_type="CAUSAL_LM"),
    )
    model.print_trainable_parameters()
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir=os.environ.get("BT_CHECKPOINT_DIR", "checkpoints"),
            num_train_epochs=float(os.environ.get("EPOCHS", "30")),
            per_device_train_batch_size=2,
            learning_rate=2e-4,
            warmup_steps=5,
            bf16=on_gpu,
            logging_steps=5,
            save_strategy="steps",
            save_steps=30,
            report_to="none",
        ),
        train_dataset=tokenized_examples(tokenizer),
        data_collator=DataCollatorForSeq2Seq(tokenizer, padding=True),
    )
    trainer.train(resume_from_checkpoint=newest_loaded_checkpoint())


if __name__ == "__main__":
    main()
