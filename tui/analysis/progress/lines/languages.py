"""Replace the words for loss, step, epoch and learning rate in other languages by the English ones."""

from __future__ import annotations

import re

_WORDS = {
    "loss": "perte verlust pérdida perdida perda perdita потери потеря лосс 损失值 损失 損失 손실",
    "epoch": "époque epoche época epoca эпоха 轮次 轮数 エポック 轮 에포크 에폭",
    "step": "étape schritt paso passo шаг 步数 步骤 步數 步 ステップ 스텝 단계",
    "iteration": "itération iteración iteração iterazione итерация 迭代次数 迭代 イテレーション",
    "train": "entraînement entrenamiento treinamento treino addestramento обучении 训练 訓練 훈련 학습",
    "val": "validación validação validazione валидации 验证 驗證 検証 검증",
    "test": "тесте 测试 測試 テスト 테스트",
    "batch": "批次 バッチ батч 배치",
    "avg": "moyenne media média durchschnittlicher средние средняя 平均 평균",
    "total": "总 합계",
    "train loss": "trainingsverlust",
    "val loss": "validierungsverlust",
    "learning rate": (
        "taux_d'apprentissage lernrate tasa_de_aprendizaje taxa_de_aprendizado taxa_de_aprendizagem"
        " tasso_di_apprendimento скорость_обучения 学习率 學習率 学習率 학습률"
    ),
}
_ENGLISH = {word.replace("_", " "): english for english, words in _WORDS.items() for word in words.split()}


def _any_of(words: list[str]) -> re.Pattern[str]:
    """Return an expression for words that stand alone; those without an alphabet follow each other."""
    first = "".join(sorted({word[0] for word in words}))
    alphabetic, others = (
        "|".join(sorted((word for word in words if (word[0] <= "ӿ") == is_alphabetic), key=len, reverse=True))
        for is_alphabetic in (True, False)
    )
    return re.compile(
        rf"(?=[{first}])(?:(?<![^\W\d_])(?:{alphabetic})(?![^\W\d_])"
        rf"|(?<![一-鿿](?=[轮步总]))(?:{others}))"  # but 同步 is one word
    )


_WORD, _WORD_BEYOND_LATIN = _any_of([*_ENGLISH]), _any_of([word for word in _ENGLISH if word[0] >= "Ѐ"])
_PLAIN = bytes((*range(0xC3), 0xE2, *range(0xEE, 0x100)))  # ASCII, punctuation, and what bars are drawn with
_CYRILLIC = 0xD0
_HINTS = ("verlust", "schritt", "epoche", "epoca", "perte", "perd", "paso ", "passo ")
_ACCENTED = ("étape", "époque", "época", "pérd", "itéra", "iteraci", "iteraç")
_OF = re.compile(r"\bloss (?:de |di |d['’]|en |na |на )(?:la )?(train|val|test)(?:idation|e)?\b")
_DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d++(?![.,]\d))")
_DECIMAL_POINT = re.compile(r"\d\.\d")
_NTH = re.compile(r"第 ?(\d{1,9})(?: ?/ ?(\d{1,9}))? ?(epoch|step)")


def in_english(text: str) -> str:
    """Return the text with the words that say what its numbers are in English."""
    lowered = text.lower()
    letters = b"" if lowered.isascii() else text.encode(errors="ignore").translate(None, _PLAIN)
    words = _WORD_BEYOND_LATIN if letters and max(letters) >= _CYRILLIC else None
    for hint in (*_HINTS, *_ACCENTED) if letters else _HINTS:
        if hint in lowered:
            words = _WORD
            break
    if words is None or len(lowered) != len(text):
        return text
    parts: list[str] = []
    end = 0
    for match in words.finditer(lowered):
        follows = lowered[match.end() : match.end() + 1].isalnum()
        parts += text[end : match.start()], _ENGLISH[match[0]], " " if follows else ""
        end = match.end()
    if not parts:
        return text
    told = _OF.sub(r"\1 loss", "".join((*parts, text[end:])))
    if "," in told and _DECIMAL_POINT.search(told) is None and match[0] < "\u0500":
        told = _DECIMAL_COMMA.sub(".", told)
    return told if "第" not in told else _NTH.sub(_counted, told)


def _counted(match: re.Match[str]) -> str:
    return f"{match[3]} {match[1]}/{match[2]}" if match[2] else f"{match[3]} {match[1]}"
