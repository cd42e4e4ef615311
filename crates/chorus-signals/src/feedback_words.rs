//! Phrases that say what a message thinks of the answer before it, in sixteen languages.
//!
//! It knows no head and no rule. A phrase counts where it stands as words of its own; in scripts without spaces, anywhere.
//! Thanks are a courtesy: beside a phrase of another kind they say nothing. **Invariant:** at most one kind is named, and
//! none by a message longer than [`LONGEST`].

use crate::literal::LiteralSet;
use crate::text::{Case, comparable};
use std::sync::OnceLock;

/// Longest message that is read, in bytes: in longer ones such phrases are about something else.
const LONGEST: usize = 240;

/// How many times likelier a kind is when a phrase of it stands in the message. On validation messages a phrase is found so
/// much more often beside its own kind than beside another that the ratio is above a hundred (see the cards of the user
/// feedback heads); the factor is far below that, because the head has read the same words and the two are not independent.
const TIMES: f32 = 20.0;

/// A kind of feedback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The answer was good.
    Satisfied,
    /// It was not understood.
    NeedClarification,
    /// It was wrong, or did not work.
    WrongAnswer,
    /// Another one is wanted.
    WantDifferent,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Satisfied, Self::NeedClarification, Self::WrongAnswer, Self::WantDifferent];

    /// The head's label for it.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Satisfied => "satisfied",
            Self::NeedClarification => "need_clarification",
            Self::WrongAnswer => "wrong_answer",
            Self::WantDifferent => "want_different",
        }
    }

    fn phrases(self, tongue: &Tongue) -> &'static str {
        match self {
            Self::Satisfied => tongue.satisfied,
            Self::NeedClarification => tongue.unclear,
            Self::WrongAnswer => tongue.wrong,
            Self::WantDifferent => tongue.other,
        }
    }
}

/// The phrases of a language, with bars between them.
struct Tongue {
    satisfied: &'static str,
    unclear: &'static str,
    wrong: &'static str,
    other: &'static str,
}

/// English, German, Spanish, French, Portuguese, Italian, Dutch, Polish, Russian, Ukrainian, Turkish, Arabic, Hindi, Chinese,
/// Japanese, Korean.
const TONGUES: [Tongue; 16] = [
    Tongue {
        satisfied: "thank you|thanks|thx|perfect|great answer|great job|well done|very helpful|really helpful|so helpful|that helps|that helped|exactly what i needed|exactly what i wanted|just what i needed|works now|that worked|makes sense now|i get it now|awesome|brilliant",
        unclear: "i don't understand|i do not understand|don't get it|didn't understand|what do you mean|unclear|not clear|confusing|confused|clarify|explain that again|explain it again|explain again|simpler|in plain words|i'm lost|can't follow|what does that mean|over my head|what do you mean by|makes no sense to me",
        wrong: "that's wrong|that is wrong|this is wrong|is wrong|wrong answer|incorrect|not correct|isn't correct|not true|not right|isn't right|you made a mistake|there is a mistake|there's an error|doesn't work|does not work|didn't work|still fails|still broken|you're mistaken|you are mistaken|factually",
        other: "another one|another version|another way|another approach|another option|another example|a different one|a different version|a different approach|a different way|different options|something else|something different|an alternative|alternatives|other options|other ideas|other suggestions|in a different style|make it shorter|make it longer|rewrite it|not what i asked for",
    },
    Tongue {
        satisfied: "danke|vielen dank|dankeschön|perfekt|super|prima|klasse|wunderbar|genau das|sehr hilfreich|hat geholfen|hat mir geholfen|funktioniert jetzt|jetzt klappt|passt so|gute antwort|jetzt verstehe ich",
        unclear: "verstehe ich nicht|verstehe nicht|nicht verstanden|verstehe das nicht|was meinst du|was meinen sie|was bedeutet das|was heißt das|unklar|nicht klar|verwirrend|komme nicht mit|einfacher erklären|genauer erklären|noch einmal erklären|nochmal erklären|einfacher|kapiere ich nicht",
        wrong: "das ist falsch|das stimmt nicht|stimmt nicht|ist falsch|falsche antwort|nicht richtig|nicht korrekt|fehlerhaft|ist ein fehler|einen fehler|du irrst dich|sie irren sich|funktioniert nicht|geht nicht|klappt nicht|immer noch nicht|falsch",
        other: "etwas anderes|was anderes|eine andere|ein anderes|einen anderen|andere vorschläge|andere ideen|noch eine variante|eine alternative|alternativen|anders formulieren|anderer stil|in einem anderen stil|mach es kürzer|gefällt mir nicht",
    },
    Tongue {
        satisfied: "gracias|perfecto|excelente|genial|justo lo que necesitaba|justo lo que quería|justo lo que buscaba|muy útil|me sirvió|me ha servido|me ayudó|me ha ayudado|ya funciona|buena respuesta|muy bien explicado|ahora lo entiendo|estupendo",
        unclear: "no entiendo|no lo entiendo|no entendí|no me queda claro|no está claro|no queda claro|qué quieres decir|qué significa eso|a qué te refieres|confuso|me confunde|puedes aclarar|aclárame|explícalo de nuevo|más sencillo|más claro|me perdí",
        wrong: "está mal|es incorrecto|incorrecto|incorrecta|no es correcto|no es cierto|no es verdad|te equivocas|te equivocaste|te has equivocado|hay un error|es falso|no funciona|sigue sin funcionar|sigue fallando|respuesta equivocada",
        other: "otra opción|otras opciones|otra versión|otra manera|otra forma|otro ejemplo|otro enfoque|otro estilo|algo diferente|algo distinto|otra cosa|una alternativa|alternativas|otras ideas|más corto|no me gusta",
    },
    Tongue {
        satisfied: "merci|parfait|super|génial|excellent|exactement ce que|exactement ce qu|très utile|ça m'a aidé|ça marche maintenant|ça fonctionne maintenant|bonne réponse|bien expliqué|c'est clair maintenant|impeccable|bravo",
        unclear: "je ne comprends pas|je comprends pas|pas compris|pas clair|que veux-tu dire|que voulez-vous dire|qu'est-ce que ça veut dire|ça veut dire quoi|c'est confus|préciser|clarifier|expliquer à nouveau|explique encore|plus simplement|plus simple|je suis perdu|je suis perdue",
        wrong: "c'est faux|c'est incorrect|incorrect|incorrecte|pas correct|pas juste|pas vrai|tu te trompes|vous vous trompez|il y a une erreur|une erreur|ça ne marche pas|ça ne fonctionne pas|ne marche toujours pas|mauvaise réponse|inexact",
        other: "autre chose|une autre version|une autre façon|une autre manière|un autre exemple|une autre approche|une autre option|un autre style|d'autres idées|d'autres options|une alternative|quelque chose de différent|plus court|ne me plaît pas",
    },
    Tongue {
        satisfied: "obrigado|obrigada|valeu|perfeito|excelente|ótimo|ótima|exatamente o que|muito útil|ajudou muito|me ajudou|agora funciona|funcionou|boa resposta|agora entendi|ficou claro|maravilha",
        unclear: "não entendi|não entendo|não compreendi|não está claro|não ficou claro|o que você quer dizer|o que isso significa|o que quer dizer|confuso|pode esclarecer|esclareça|explique de novo|explica de novo|mais simples|estou perdido|estou perdida",
        wrong: "está errado|está errada|isso é falso|incorreto|incorreta|não está certo|não está correto|não é verdade|você errou|você se enganou|há um erro|tem um erro|não funciona|não funcionou|continua falhando|resposta errada",
        other: "outra coisa|outra versão|outra forma|outra maneira|outra opção|outras opções|outro exemplo|outro estilo|outra abordagem|algo diferente|uma alternativa|alternativas|outras ideias|mais curto|não gostei",
    },
    Tongue {
        satisfied: "grazie|perfetto|ottimo|ottima|eccellente|fantastico|proprio quello che|esattamente quello che|molto utile|mi è stato utile|mi hai aiutato|ora funziona|buona risposta|ora ho capito|ben fatto",
        unclear: "non capisco|non ho capito|non è chiaro|non mi è chiaro|poco chiaro|cosa intendi|cosa vuoi dire|che significa|che vuol dire|confuso|puoi chiarire|spiega di nuovo|spiegalo di nuovo|più semplice|mi sono perso|mi sono persa",
        wrong: "è sbagliato|è sbagliata|sbagliato|non è corretto|non è vero|non è giusto|ti sbagli|hai sbagliato|c'è un errore|errato|errata|è falso|non funziona|ancora non funziona|risposta sbagliata",
        other: "qualcos'altro|qualcosa di diverso|un'altra versione|un altro modo|un altro esempio|un altro approccio|un altro stile|un'altra opzione|altre opzioni|altre idee|un'alternativa|alternative|più corto|non mi piace",
    },
    Tongue {
        satisfied: "dank je|dank u|bedankt|dankjewel|perfect|geweldig|precies wat ik|heel nuttig|erg nuttig|het werkt nu|goed antwoord|nu snap ik het|top",
        unclear: "ik begrijp het niet|begrijp ik niet|ik snap het niet|snap ik niet|wat bedoel je|wat bedoelt u|wat betekent dat|onduidelijk|niet duidelijk|verwarrend|leg het nog eens uit|eenvoudiger",
        wrong: "dat klopt niet|klopt niet|dat is fout|dat is onjuist|is niet juist|niet correct|je vergist je|er zit een fout in|het werkt niet|werkt niet|verkeerd antwoord",
        other: "iets anders|een andere versie|een andere manier|een ander voorbeeld|een andere aanpak|een alternatief|alternatieven|andere opties|andere ideeën|maak het korter|niet wat ik bedoelde",
    },
    Tongue {
        satisfied: "dzięki|dziękuję|świetnie|świetna odpowiedź|idealnie|doskonale|super|właśnie tego|dokładnie tego|bardzo pomocne|bardzo przydatne|pomogło|teraz działa|teraz rozumiem",
        unclear: "nie rozumiem|nie zrozumiałem|nie zrozumiałam|co masz na myśli|co to znaczy|niejasne|nie jest jasne|wyjaśnij jeszcze raz|możesz wyjaśnić|prościej|pogubiłem się|pogubiłam się",
        wrong: "to nieprawda|nieprawda|to błąd|jest błędne|błędna odpowiedź|niepoprawne|niepoprawna|to źle|nie zgadza się|mylisz się|pomyliłeś się|jest błąd|nie działa|nadal nie działa",
        other: "coś innego|inną wersję|inna wersja|inny sposób|inny przykład|inne podejście|inny styl|inne pomysły|inne propozycje|inną opcję|alternatywę|alternatywy|inaczej|krócej|nie podoba mi się",
    },
    Tongue {
        satisfied: "спасибо|благодарю|отлично|супер|идеально|прекрасно|замечательно|именно то|то что нужно|очень помогло|очень полезно|теперь работает|теперь понятно|хороший ответ|всё получилось",
        unclear: "не понимаю|не понял|не поняла|непонятно|не ясно|неясно|что ты имеешь в виду|что вы имеете в виду|что это значит|запутался|запуталась|поясни|поясните|уточни|объясни ещё раз|проще",
        wrong: "неправильно|неверно|это неправда|это не так|ты ошибся|вы ошиблись|ты ошибаешься|вы ошибаетесь|тут ошибка|здесь ошибка|есть ошибка|ошибка в|не работает|неправильный ответ|неверный ответ",
        other: "что-нибудь другое|что-то другое|другой вариант|другие варианты|другую версию|другой способ|другой пример|другой подход|в другом стиле|другие идеи|альтернативу|альтернативы|по-другому|иначе|короче|не нравится",
    },
    Tongue {
        satisfied: "дякую|чудово|відмінно|ідеально|саме те|дуже корисно|допомогло|тепер працює|тепер зрозуміло",
        unclear: "не розумію|не зрозумів|не зрозуміла|незрозуміло|що ти маєш на увазі|що це означає|поясни|поясніть|простіше",
        wrong: "неправильно|невірно|це не так|це неправда|ти помилився|ви помилилися|тут помилка|не працює",
        other: "щось інше|інший варіант|інші варіанти|інший спосіб|інший приклад|інший стиль|альтернативу|по-іншому|інакше|коротше",
    },
    Tongue {
        satisfied: "teşekkürler|teşekkür ederim|sağ ol|sağol|harika|mükemmel|süper|tam istediğim|tam aradığım|çok faydalı|çok işime yaradı|çok yardımcı oldu|şimdi anladım|şimdi çalışıyor|eline sağlık",
        unclear: "anlamadım|anlamıyorum|ne demek istiyorsun|ne demek istediniz|bu ne demek|net değil|açık değil|kafam karıştı|tekrar açıkla|tekrar anlat|daha basit|açıklar mısın",
        wrong: "yanlış|bu doğru değil|doğru değil|hatalı|hata var|yanılıyorsun|hata yaptın|çalışmıyor|hâlâ çalışmıyor|yanlış cevap",
        other: "başka bir|farklı bir|başka bir şey|farklı bir şey|başka seçenek|başka öneri|başka fikir|alternatif|farklı şekilde|başka türlü|daha kısa|beğenmedim",
    },
    Tongue {
        satisfied: "شكرا|شكرًا|شكراً|شكرا لك|ممتاز|رائع|مثالي|هذا ما أردت|هذا ما أريده|بالضبط ما|مفيد جدا|ساعدني كثيرا|يعمل الآن|فهمت الآن|أحسنت",
        unclear: "لم أفهم|لا أفهم|ماذا تقصد|ماذا تعني|ما معنى هذا|غير واضح|ليس واضحا|مربك|وضح|أعد الشرح|اشرح مرة أخرى|أبسط",
        wrong: "هذا خطأ|خطأ|غير صحيح|ليس صحيحا|ليس صحيحًا|أنت مخطئ|أخطأت|إجابة خاطئة|لا يعمل|ما زال لا يعمل",
        other: "شيئا آخر|شيئًا آخر|شيء آخر|نسخة أخرى|طريقة أخرى|مثال آخر|مثالا آخر|خيار آخر|خيارات أخرى|أفكار أخرى|بديل|بدائل|أسلوب آخر|بطريقة مختلفة|أقصر|لم يعجبني",
    },
    Tongue {
        satisfied: "धन्यवाद|शुक्रिया|बहुत बढ़िया|बढ़िया|बहुत अच्छा|बिल्कुल सही|यही चाहिए था|यही चाहता था|यही चाहती थी|मददगार|काम कर गया|अब समझ आया|अब समझ गया",
        unclear: "समझ नहीं आया|समझ में नहीं आया|नहीं समझा|नहीं समझी|नहीं समझ पाया|क्या मतलब|मतलब क्या|स्पष्ट नहीं|साफ़ नहीं|फिर से समझाओ|दोबारा समझाओ|और सरल|आसान भाषा में",
        wrong: "यह गलत है|ये गलत है|गलत|ग़लत|सही नहीं|ठीक नहीं|सच नहीं|गलती है|काम नहीं कर रहा|काम नहीं करता|गलत जवाब",
        other: "कुछ और|कुछ अलग|दूसरा|दूसरी|दूसरे|अलग तरीके|अलग तरीका|कोई और|विकल्प|और विकल्प|पसंद नहीं|छोटा करो",
    },
    Tongue {
        satisfied: "谢谢|謝謝|多谢|感谢|太好了|太棒了|很好|完美|正是我|就是我要的|很有帮助|有用|解决了|明白了|懂了|回答得很好|不错",
        unclear: "不明白|没明白|不懂|没看懂|看不懂|没听懂|听不懂|不理解|什么意思|不清楚|不太清楚|有点乱|再解释|解释清楚|说清楚|说得简单|更简单|糊涂",
        wrong: "不对|错了|错误|有误|不正确|不是真的|弄错|搞错|说错|答错|不准确|还是不行|不能用|运行不了|没有用",
        other: "换一个|换个|另一个|另一种|别的|其他的|其他方案|其他选择|不一样的|不同的|再来一个|重新写|换种|短一点|不喜欢|不是我想要的",
    },
    Tongue {
        satisfied: "ありがとう|感謝します|助かりました|助かった|完璧|素晴らしい|すばらしい|まさに欲しかった|とても役に立|役に立ちました|分かりました|わかりました|解決しました|うまくいきました|いい答え",
        unclear: "分かりません|わかりません|分からない|わからない|分かりにくい|わかりにくい|理解できません|理解できない|どういう意味|どういうこと|意味が|はっきりしない|もう一度説明|もっと簡単に|もう少し詳しく|混乱",
        wrong: "間違い|間違って|違います|違うと思|正しくない|正しくありません|誤り|事実と異なる|本当ではない|動きません|動かない|うまくいきません|まだ直って|エラーが出",
        other: "別の|他の|ほかの|違うもの|違う形|違うやり方|違うスタイル|代わりの|代案|もう一つ|書き直して|もっと短く|気に入りません|気に入らない",
    },
    Tongue {
        satisfied: "감사합니다|고마워|고맙습니다|완벽|훌륭|좋은 답변|딱 필요|딱 원하던|바로 이거|도움이 됐|도움이 되었|도움 됐|이제 이해|이제 됩니다|잘 됩니다|최고",
        unclear: "이해가 안|이해 못|이해하지 못|모르겠|무슨 뜻|무슨 말|무슨 의미|명확하지|헷갈|다시 설명|더 쉽게|쉽게 설명|자세히 설명",
        wrong: "틀렸|틀린|잘못|사실이 아니|맞지 않|정확하지 않|오류가|오답|작동하지 않|작동 안|여전히 안",
        other: "다른 것|다른 걸|다른 거|다른 방법|다른 방식|다른 버전|다른 예|다른 스타일|다른 옵션|다른 아이디어|대안|다르게|다시 써|더 짧게|마음에 안",
    },
];

/// Weighs a message's phrases into the probabilities of a head that did not look for them, one a label.
///
/// Source: Bayes' rule in odds.
pub fn weigh(labels: &[String], probabilities: &mut [f32], text: &str) {
    let Some(kind) = kind(text) else {
        return;
    };
    let named = labels.iter().zip(probabilities.iter_mut()).filter(|(label, _)| *label == kind.label());
    named.for_each(|(_, probability)| *probability *= TIMES);
    let total: f32 = probabilities.iter().sum();
    probabilities.iter_mut().for_each(|probability| *probability /= total.max(f32::MIN_POSITIVE));
}

/// The kind that a message's phrases name; `None` when they name none, or more than one.
#[must_use]
pub fn kind(text: &str) -> Option<Kind> {
    let text = Some(text).filter(|text| text.len() <= LONGEST)?;
    let (phrases, kinds) = table()?;
    let text = comparable(&text.replace('’', "'"), Case::Folded);
    let found = |kind: Kind| phrases.hits(&text).any(|hit| kinds.get(hit.keyword) == Some(&kind));
    let mut named = Kind::ALL.into_iter().filter(|kind| found(*kind));
    match (named.next(), named.next(), named.next()) {
        (Some(Kind::Satisfied), Some(other), None) => Some(other),
        (only, None, None) => only,
        _ => None,
    }
}

/// All phrases with their kinds; `None` only if a phrase is empty, which a test rules out.
fn table() -> Option<&'static (LiteralSet, Vec<Kind>)> {
    static TABLE: OnceLock<Option<(LiteralSet, Vec<Kind>)>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let of = |(tongue, kind): (&Tongue, Kind)| kind.phrases(tongue).split('|').map(move |it| (it, kind));
        let pairs = TONGUES.iter().flat_map(|tongue| Kind::ALL.map(|kind| (tongue, kind)));
        let (phrases, kinds): (Vec<String>, Vec<Kind>) =
            pairs.flat_map(of).map(|(phrase, kind)| (phrase.to_owned(), kind)).unzip();
        Some((LiteralSet::build(&phrases, Case::Folded).ok()?, kinds))
    });
    table.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phrase_names_its_kind_by_itself() {
        for tongue in &TONGUES {
            for kind_of_phrase in Kind::ALL {
                for phrase in kind_of_phrase.phrases(tongue).split('|') {
                    assert_eq!(kind(phrase), Some(kind_of_phrase), "{phrase}");
                }
            }
        }
    }

    #[test]
    fn a_phrase_multiplies_the_odds_of_its_kind() {
        let labels = ["none", "satisfied", "wrong_answer"].map(str::to_owned);
        let weighed = |text: &str| {
            let mut probabilities = [0.8, 0.1, 0.1];
            weigh(&labels, &mut probabilities, text);
            probabilities
        };
        let [none, satisfied, wrong] = weighed("danke");
        assert!((satisfied / none - TIMES * 0.1 / 0.8).abs() < 1e-5);
        assert!((none + satisfied + wrong - 1.0).abs() < 1e-6);
        assert_eq!(weighed("Hauptstadt von Peru?"), [0.8, 0.1, 0.1]);
    }

    #[test]
    fn feedback_is_named_in_every_script() {
        use Kind::{NeedClarification, Satisfied, WantDifferent, WrongAnswer};
        for (text, want) in [
            ("Thank you, that was it.", Satisfied),
            ("I’m lost, sorry", NeedClarification),
            ("Danke, aber das stimmt nicht.", WrongAnswer),
            ("¿Me das otro ejemplo?", WantDifferent),
            ("Je ne comprends pas la deuxième ligne", NeedClarification),
            ("Это неверно!", WrongAnswer),
            ("这个答案不对。", WrongAnswer),
            ("別の書き方はありますか", WantDifferent),
            ("이해가 안 돼서 그런데", NeedClarification),
            ("هذا غير صحيح", WrongAnswer),
            ("समझ नहीं आया", NeedClarification),
        ] {
            assert_eq!(kind(text), Some(want), "{text}");
        }
    }

    #[test]
    fn what_names_two_kinds_or_runs_long_names_none() {
        assert_eq!(kind("This is wrong, give me another version"), None);
        assert_eq!(kind("What is the capital of Peru?"), None);
        assert_eq!(kind(&format!("thanks {}", "and then we went on ".repeat(20))), None);
        assert_eq!(kind(""), None);
    }
}
