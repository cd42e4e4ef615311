//! Words that ask for an image, in fourteen languages.
//!
//! It knows no head and no rule. Three shapes count: a verb of drawing as an order ("draw a fox"), a verb of making or wishing
//! with a noun for an image after it ("create a picture of a fox"; before it, in languages that put the verb last), and a
//! noun for an image that opens the text as its title ("photo of a fox, 8k"). What only sounds like it is taken out first:
//! idioms ("draw a conclusion"), and texts about images ("how do I draw", "a function that draws"). **Invariant:** only the
//! first and the last 2,048 bytes are read.

use crate::text::{Case, comparable, excerpts};
use regex::Regex;
use std::sync::OnceLock;

/// Bytes that are read at either end of a text.
const END_BYTES: usize = 2048;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Text.
    Text,
    /// An image.
    Image,
    /// Text and an image.
    Both,
}

/// What a text asks for; `None` when its words do not say.
pub(crate) fn wish(text: &str) -> Option<Wish> {
    let text = comparable(&excerpts(text, 2, END_BYTES).join("\n"), Case::Folded);
    let words = words()?;
    let about = words.about.is_match(&text);
    let meant = words.about.replace_all(&words.idioms.replace_all(&text, " "), " ").into_owned();
    let image = words.draws.is_match(&meant) || words.makes_an_image(&meant) || words.is_a_title(&meant);
    if words.illustrated.is_match(&meant) || image && words.tells.is_match(&meant) {
        return Some(Wish::Both);
    }
    if image { Some(Wish::Image) } else { about.then_some(Wish::Text) }
}

/// A language whose verbs of making come before the noun.
struct Tongue {
    makes: &'static str,
    images: &'static str,
}

/// English, German, Spanish, French, Portuguese, Italian, Russian, Polish, Arabic.
const TONGUES: [Tongue; 9] = [
    Tongue {
        makes: "generate|create|make|produce|give|show|design|render|get|want|need|like|love|add|include|provide|with|plus",
        images: "images?|pictures?|photos?|photographs?|illustrations?|paintings?|drawings?|sketch|portrait|artwork|\
                 wallpaper|poster|logo|icon|avatar|sticker|banner|book cover|cover art|concept art|comic|meme|cartoon|\
                 coloring page|pic|img",
    },
    Tongue {
        makes: "erstelle|generiere|erzeuge|mach|mache|zeig|zeige|gestalte|entwirf|möchte|will|brauche|gern|mit|samt",
        images: "bild|bilder|foto|illustration|gemälde|zeichnung|poster|logo|hintergrundbild|porträt",
    },
    Tongue {
        makes: "crea|genera|haz|hazme|quiero|quisiera|muestra|muéstrame|diseña|necesito|añade|con",
        images: "imagen|foto|ilustración|dibujo|póster|logo|logotipo|retrato|fondo de pantalla",
    },
    Tongue {
        makes: "crée|créer|génère|fais|fais-moi|voudrais|veux|montre|montre-moi|conçois|ajoute|avec",
        images: "image|photo|illustration|dessin|affiche|logo|portrait|fond d'écran",
    },
    Tongue {
        makes: "crie|gere|faça|quero|queria|mostre|adicione|com",
        images: "imagem|foto|ilustração|desenho|pôster|logotipo|retrato|papel de parede",
    },
    Tongue {
        makes: "crea|genera|fai|fammi|voglio|vorrei|mostra|mostrami|aggiungi|con",
        images: "immagine|foto|illustrazione|disegno|poster|logo|ritratto|sfondo",
    },
    Tongue {
        makes: "создай|создайте|сгенерируй|сгенерируйте|сделай|сделайте|хочу|покажи|добавь|с",
        images: r"изображени\w*|картинк\w*|рисун\w+|фото\w*|иллюстраци\w*|постер|плакат|логотип|портрет|обои",
    },
    Tongue {
        makes: "stwórz|utwórz|wygeneruj|zrób|chcę|pokaż|dodaj|z",
        images: r"obraz\w*|zdjęci\w*|ilustracj\w*|rysun\w+|plakat|logo|portret|tapet\w*",
    },
    Tongue {
        makes: "أنشئ|وأنشئ|ولد|صمم|أريد|أرني|أضف|وأضف|اصنع|مع",
        images: r"صورة|رسم\w*|لوحة|ملصق\w*|شعار\w*",
    },
];

/// Orders to draw; in languages that put the verb last, and in Chinese, an image with the verb that makes it.
const DRAWS: [&str; 15] = [
    r"(?:^|[.!?;:,…\n] ?|\b(?:please|pls|you|you to|and|then|also|now|me|just|or) )(?:re)?(?:draw|paint|sketch|illustrate|doodle)\b",
    r"/imagine\b",
    r"\b(?:zeichne|zeichnen sie|skizziere|illustriere|mal mir|male (?:mir|bitte|eine?n?|zwei|das|den|die))\b",
    r"\b(?:dibuja|dibuje|dibújame|dibújalo|dibújala|píntame|pinta (?:una?|el|la|a))\b",
    r"\b(?:dessine|dessinez|peins|illustre-la|illustre-le)\b",
    r"\b(?:desenhe|desenha|pinte (?:uma?|para))\b",
    r"\b(?:disegna|disegnami|disegnane|dipingi)\b",
    r"\b(?:нарисуй|нарисуйте|изобрази|изобразите)\b",
    r"\b(?:narysuj|namaluj|zilustruj)\b",
    r"(?:^|\s)و?ارسم",
    r"画[一个個只隻张張幅下出两兩点點我你]|[请請帮幫给給再并並就我,，]画|^画|(?:生成|创建|创作|制作|要|来|配|附上)[^。?!]{0,8}(?:图片|图像|插画|插图|照片|海报|壁纸|头像|幅画|张图)",
    r"(?:絵|画像|イラスト|写真|ポスター|壁紙|ロゴ|挿絵)[もを]?[^。?]{0,3}(?:描いて|生成して|作って|作成して|付けて|見せて|入れて|欲しい)|を描いて(?:ください|くれ|ほしい|[。!、]|$)",
    r"그려 ?(?:줘|주세요|줄래|봐)|(?:그림|이미지|사진|일러스트|포스터|배경화면|로고|삽화)(?:도|을|를)? ?(?:그려|생성|만들|보여|넣어)",
    r"\bçiz\b|\bçizin\b|\bçizer misin\b|\b(?:resim|resmi|resmini|görsel|görseli|görselini|fotoğrafı|çizim|posteri)(?: de| da)? (?:yap|oluştur|üret|göster|ekle|istiyorum)",
    r"(?:चित्र|तस्वीर|छवि|स्केच|पेंटिंग|पोस्टर)(?: भी)? (?:बना|दिखा|उत्पन्न)",
];

/// Orders to tell something in words.
const TELLS: [&str; 14] = [
    r"\b(?:explain|describe|write|compose|tell|summari[sz]e|teach|recipe|haiku|caption|paragraph|article|blog post|guide)\b",
    r"\b(?:erkläre?|beschreibe?|schreibe?|erzähle?|rezept)\b",
    r"\b(?:explica|describe|escribe|cuenta|receta)\b",
    r"\b(?:explique|décris|écris|raconte|recette)\b",
    r"\b(?:explique|descreva|escreva|conte|receita)\b",
    r"\b(?:spiega|descrivi|scrivi|racconta|ricetta)\b",
    r"\b(?:объясни|опиши|напиши|расскажи|рецепт)\b",
    r"\b(?:wyjaśnij|opisz|napisz|opowiedz|przepis)\b",
    r"(?:^|\s)و?(?:اشرح|اكتب|احك|صف|وصفة)",
    "解释|解釋|说明|說明|讲|講|介绍|介紹|描述|写|寫|做法",
    "説明し|書い|教え|紹介し|話し|描写し",
    "설명하|설명해|쓰고|써 |소개하|들려|알려|묘사하",
    r"\b(?:açıkla|anlat|yaz|tarifi)\b",
    "समझाओ|लिखो|वर्णन|सुनाओ|बताओ",
];

/// What speaks of drawing and asks for no image.
const IDIOMS: [&str; 5] = [
    r"\bdraw(?:s|n|ing)? (?:up|out|on|upon|from|near|lots|straws|blood|inspiration|(?:(?:a|an|the|my|your|any|some|two|three) )?(?:\w+ )?(?:conclusions?|attention|lessons?|parallels?|comparisons?|distinctions?|line|inferences?))\b",
    r"\b(?:paint|give|get|see)s? (?:me |us )?(?:a |the )?(?:big |bigger |full |whole |clear |bleak |grim )?picture(?: in words|\b)(?:[,.!]|$| in words)",
    r"\b(?:big|bigger|whole|full) picture\b|\bpicture this\b",
    r"\b(?:illustrate|sketch|draw)(?: out)? (?:the|your|this|that|my|an?) (?:point|argument|idea|concept|principle|difference|plan)\b",
    "画家|画展|画廊|画面|漫画|动画|計画|映画|企画",
];

/// What is about images: learning to make one, describing one, writing code or words for one.
const ABOUT: [&str; 12] = [
    r"\bhow (?:do|can|should|would|could|did|to|does|long)\b[^.?!]{0,40}\b(?:draw|paint|sketch|illustrate|render|design|make|create|generate|take|resize|compress|print)\w*\b[^.?!]*",
    r"\b(?:learn|like|love|prefer|try) to (?:draw|paint|sketch)\b",
    r"\b(?:code|function|script|program|class|method|matplotlib|library|component|shader|query)\b[^.?!]{0,60}\b(?:draw|paint|plot|render|generate|display|show|crop)\w*\b[^.?!]*",
    r"\b(?:prompts?|alt text|captions?|description|titles?|names?|ideas?) (?:for|to|of|about)\b[^.?!]{0,30}\b(?:images?|pictures?|photos?|paintings?|drawings?|logo|illustrations?)\b[^.?!]*",
    r"\b(?:describe|caption|analy[sz]e|compare|explain|interpret|read|identify|summari[sz]e|what is in|what's in|what do you see in)\b[^.?!]{0,20}\b(?:this|these|the|that|attached|uploaded|my) (?:\w+ ){0,2}(?:images?|pictures?|photos?|screenshots?|drawings?|paintings?|charts?|diagrams?)\b",
    r"\bwie (?:zeichne|zeichnet|male|malt|mache)\b[^.?!]*|\b(?:cómo|como) (?:se )?(?:dibuj|pint|desenh)\w*[^.?!]*|\bcomment (?:dessin|peindre)\w*[^.?!]*|\bcome si (?:disegn|dipin)\w*[^.?!]*",
    r"\bкак (?:нарисовать|рисовать|рисуют)[^.?!]*|\bjak (?:narysować|się rysuje|maluje)[^.?!]*|كيف (?:أرسم|ترسم|يرسم)[^.؟!]*",
    r"(?:怎么|如何|怎样|怎樣|怎麼)画[^。?!]*|描き方|どう描[^。?!]*|어떻게 (?:그려|그리)[^.?!]*|그리는 (?:법|방법)|nasıl çiz[^.?!]*|कैसे बना[^।?!]*",
    r"(?:描述|分析|解释|说说)(?:一下)?(?:这|那)?[张幅]?(?:图片|照片|图|画|截图)|(?:この|その)(?:画像|写真|絵)を(?:説明|分析)|이 (?:이미지|사진|그림)를 (?:설명|분석)",
    r"\b(?:beschreibe|beschreib|analysiere) (?:dieses|das|mein) (?:bild|foto)|\b(?:describe|analiza) (?:esta|la|mi) (?:imagen|foto)|\b(?:décris|analyse) (?:cette|la|ma) (?:image|photo)|\b(?:descreva|analise) (?:esta|a|minha) (?:imagem|foto)|\b(?:descrivi|analizza) (?:questa|la|mia) (?:immagine|foto)",
    r"\b(?:опиши|проанализируй) (?:это|эту|эти) (?:изображение|фото|картинку)|\bopisz (?:ten|to) (?:obraz|zdjęcie)|صف هذه الصورة|इस (?:चित्र|तस्वीर) का वर्णन|\bbu (?:resmi|fotoğrafı) (?:anlat|açıkla)",
    r"\bwho (?:drew|painted|took|made)\b[^.?!]*",
];

/// A text with pictures.
const ILLUSTRATED: &str = r"\b(?:illustrated|picture-based) (?:guide|story|explanation|tutorial|recipe|book|article|\w+ book|children's book)\b";

/// A text that opens with a noun for an image is a title of one.
const TITLE: &str = r"^(?:an? |the )?(?:\w+[ -]){0,2}(?:image|photo|picture|painting|illustration|portrait|drawing|sketch|digital art|concept art|pic) of\b";

/// Words between a verb and a noun for an image that say that the image is not what is made.
const PARTING: [&str; 34] = [
    "for",
    "of",
    "about",
    "from",
    "to",
    "that",
    "which",
    "how",
    "text",
    "caption",
    "code",
    "prompt",
    "list",
    "description",
    "function",
    "script",
    "für",
    "von",
    "über",
    "aus",
    "wie",
    "para",
    "de",
    "sobre",
    "cómo",
    "pour",
    "sur",
    "comment",
    "como",
    "per",
    "di",
    "для",
    "как",
    "dla",
];

/// Words after a noun for an image that make it another thing.
const COMPOUND: [&str; 18] = [
    "format",
    "formats",
    "file",
    "files",
    "editor",
    "editing",
    "compression",
    "classifier",
    "recognition",
    "model",
    "dataset",
    "gallery",
    "processing",
    "tag",
    "url",
    "album",
    "frame",
    "generator",
];

/// The patterns, compiled at first need.
struct Words {
    draws: Regex,
    tells: Regex,
    idioms: Regex,
    about: Regex,
    illustrated: Regex,
    title: Regex,
    makes: Vec<Regex>,
}

impl Words {
    fn compile() -> Result<Self, regex::Error> {
        let any = |patterns: &[&str]| Regex::new(&patterns.join("|"));
        let makes = TONGUES.iter().map(|Tongue { makes, images }| {
            // At most six words between them; an article may hang on the noun by an apostrophe.
            Regex::new(&format!(
                r"(?:^|[^\w])(?:{makes})((?:[ \n-]+[\w'’]+){{0,6}}?)[ \n-]+(?:\w+['’])?(?:{images})(?:\W+(\w+)|\W*$)"
            ))
        });
        Ok(Self {
            draws: any(&DRAWS)?,
            tells: any(&TELLS)?,
            idioms: any(&IDIOMS)?,
            about: any(&ABOUT)?,
            illustrated: Regex::new(ILLUSTRATED)?,
            title: Regex::new(TITLE)?,
            makes: makes.collect::<Result<_, _>>()?,
        })
    }

    fn makes_an_image(&self, text: &str) -> bool {
        self.makes.iter().flat_map(|makes| makes.captures_iter(text)).any(|found| {
            let between = found.get(1).map_or("", |gap| gap.as_str());
            let after = found.get(2).map_or("", |next| next.as_str());
            !between.split_whitespace().any(|word| PARTING.contains(&word)) && !COMPOUND.contains(&after)
        })
    }

    /// Whether the whole text is an image's title; a question is none.
    fn is_a_title(&self, text: &str) -> bool {
        !text.contains('?') && self.title.is_match(text)
    }
}

/// `None` only if a pattern did not compile, which a test rules out.
fn words() -> Option<&'static Words> {
    static WORDS: OnceLock<Option<Words>> = OnceLock::new();
    WORDS.get_or_init(|| Words::compile().ok()).as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert!(Words::compile().is_ok());
    }

    #[test]
    fn orders_to_draw_are_images_in_every_language() {
        for text in [
            "Draw a fox in the snow",
            "Could you please paint my cat?",
            "Create a high-quality picture of two dancers",
            "I'd like a wallpaper with waves",
            "Photo of an old harbour, black and white",
            "Zeichne einen Fuchs",
            "Erstelle ein Bild von einer Burg",
            "Dibuja un zorro",
            "Genera una imagen de un castillo",
            "Dessine un renard",
            "Crée une affiche avec un phare",
            "Faça um desenho de um gato",
            "Disegna una volpe",
            "Genera un'immagine di un castello",
            "Нарисуй лису",
            "Сделай картинку с маяком",
            "Narysuj lisa",
            "ارسم ثعلبا",
            "画一只狐狸",
            "帮我生成一张海报",
            "狐の絵を描いてください",
            "여우를 그려 줘",
            "Bir tilki çiz",
            "लोमड़ी का चित्र बनाओ",
        ] {
            assert_eq!(wish(text), Some(Wish::Image), "{text}");
        }
    }

    #[test]
    fn words_and_an_image_are_both() {
        for text in [
            "Explain the water cycle and draw it",
            "Write a fable with a picture",
            "An illustrated guide to knots",
            "Erkläre den Vulkan und zeichne ihn, zeichne bitte groß",
            "Cuenta una fábula y dibújala",
            "讲一个寓言,再画一张图",
            "寓話を書いて、イラストも描いて",
        ] {
            assert_eq!(wish(text), Some(Wish::Both), "{text}");
        }
    }

    #[test]
    fn a_text_about_images_wants_text() {
        for text in [
            "How do I draw a horse?",
            "Describe this image",
            "Write a function that draws a circle",
            "Give me a caption for my photo",
            "Wie zeichnet man ein Pferd?",
            "怎么画马?",
            "Who painted the picture of the sower?",
        ] {
            assert_eq!(wish(text), Some(Wish::Text), "{text}");
        }
        for text in [
            "Draw a conclusion from these figures",
            "Create a list of names",
            "Show me the image format with the best compression",
            "What is a portrait lens?",
            "A male nurse wrote to me",
            "",
        ] {
            assert_eq!(wish(text), None, "{text}");
        }
    }

    #[test]
    fn both_ends_of_a_long_text_are_read() {
        let filler = "and so the tale goes on without an end in sight. ".repeat(400);
        assert_eq!(wish(&format!("{filler} Please draw the hero.")), Some(Wish::Image));
        assert_eq!(wish(&filler), None);
    }
}
