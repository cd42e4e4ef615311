//! Patterns of attempts in fourteen languages other than English: to drop the rules, to be a model without rules, to tell
//! the hidden instructions.
//!
//! They take plain text as those of `rules.rs` do, whose first patterns know some of these languages too. What is told or
//! dropped must be the model's own ("your", "deine", "你的"): everybody may speak of other rules. It knows no threshold.
//!
//! **Invariant:** every pattern compiles, and none can match more than a few hundred bytes.

use super::family::RuleFamily;

/// Every pattern and its family.
pub(super) const PATTERNS: &[(RuleFamily, &str)] = &[
    (
        RuleFamily::Override,
        r"(?-u:\b)(hebe?|setze?|schalte?|deaktiviere|brich|wirf|verwirf|umgehe?)[^a-z0-9]+([a-z']+[^a-z0-9]+){0,2}?deine?[nr]?[^a-z0-9]+([a-z']+[^a-z0-9]+){0,2}?(regeln|richtlinien|beschrankungen|sicherheitsvorgaben|sicherheitsregeln|anweisungen|filter|grundsatze|vorgaben)(?-u:\b)",
    ),
    (
        RuleFamily::Override,
        r"(?-u:\b)(ignore|oublie|desactive|suspends|annule|abandonne|contourne|enfreins|transgresse|viole)[^a-z0-9]+([a-z']+[^a-z0-9]+){0,2}?(tes|vos)[^a-z0-9]+([a-z']+[^a-z0-9]+){0,2}?(regles|directives|restrictions|consignes|instructions|limites|filtres|principes)(?-u:\b)",
    ),
    (
        RuleFamily::Override,
        r"(?-u:\b)(ignora|olvida|desactiva|suspende|anula|abandona|elude|rompe|incumple)[^a-z0-9]+([a-z']+[^a-z0-9]+){0,2}?tus[^a-z0-9]+([a-z']+[^a-z0-9]+){0,2}?(reglas|restricciones|instrucciones|limites|filtros|principios|normas|politicas|directrices)(?-u:\b)",
    ),
    (
        RuleFamily::Override,
        r"(?-u:\b)(ignore|ignora|esqueca|esquece|desative|desativa|suspenda|anule|abandone|quebre|contorne)[^a-z0-9]+([a-z']+[^a-z0-9]+){0,2}?(tuas|suas)[^a-z0-9]+([a-z']+[^a-z0-9]+){0,2}?(regras|restricoes|instrucoes|limitacoes|filtros|principios|normas|politicas|diretrizes)(?-u:\b)",
    ),
    (
        RuleFamily::Override,
        r"(?-u:\b)(ignora|dimentica|disattiva|sospendi|annulla|abbandona|infrangi|viola|aggira)[^a-z0-9]+([a-z']+[^a-z0-9]+){0,2}?tue[^a-z0-9]+([a-z']+[^a-z0-9]+){0,2}?(regole|restrizioni|istruzioni|limitazioni|norme|politiche|direttive|linee guida)(?-u:\b)",
    ),
    (
        RuleFamily::Override,
        r"(?-u:\b)(negeer|vergeet|schakel|hef|schort|overtreed|omzeil)[^a-z0-9]+([a-z']+[^a-z0-9]+){0,2}?(je|jouw)[^a-z0-9]+([a-z']+[^a-z0-9]+){0,2}?(regels|beperkingen|instructies|richtlijnen|filters|veiligheidsregels)(?-u:\b)",
    ),
    (
        RuleFamily::Override,
        r"(zignoruj|zapomnij|porzuc|wyłacz|odrzuc|złam|anuluj|zawies|pomin|obejdz)\s+(\S+\s+){0,2}?(swoje|swoich|twoje|poprzednie|wczesniejsze|dotychczasowe)\s+(\S+\s+){0,2}?(zasad|reguł|ogranicz|instrukcj|wytyczn|polecen|polityk|filtr)",
    ),
    (
        RuleFamily::Override,
        r"(отмени|отключи|сними|отбрось|нарушь|обоиди|приостанови|сбрось|скасуи|вимкни|відкинь)\s+(\S+\s+){0,2}?(свои|своих|твои|своі|предыдущие|попередні)\s+(\S+\s+){0,2}?(правил|ограничени|обмежен|инструкци|інструкці|указани|запрет|фильтр|принцип|политик)",
    ),
    (
        RuleFamily::Override,
        r"(kurallarini|kisitlamalarini|talimatlarini|yonergelerini|ilkelerini|filtrelerini)[^a-z0-9]+([a-z']+[^a-z0-9]+){0,2}?(yok say|iptal et|askiya al|terk et|devre disi birak|cigne)",
    ),
    (
        RuleFamily::Override,
        r"(تجاهل|انس|ألغ|الغ|عطل|علق|اكسر|تخط|تخل عن|انتهك).{0,12}(قواعدك|قيودك|تعليماتك|مبادئك|سياساتك|إرشاداتك|حدودك)",
    ),
    (
        RuleFamily::Override,
        r"(अपने|अपनी|तुम्हारे).{0,12}(नियम|निर्देश|प्रतिबंध|पाबंदि|नीति|सिद्धांत).{0,10}(तोड|छोड|रद्द|स्थगित|बंद कर|हटा|त्याग)",
    ),
    (
        RuleFamily::Override,
        r"(取消|抛弃|停用|解除|撤销|绕过|关闭|放弃|打破|违反|不要遵守|不用遵守|无视|忽略|忘记|暂停).{0,4}(你的|你所有|您的).{0,6}(规则|限制|指令|安全|策略|约束|准则|原则|审查|过滤|设定)",
    ),
    (
        RuleFamily::Override,
        r"(あなたの|君の|自分の|お前の).{0,4}(規則|ルール|制限|指示|安全|方針|制約|規約|倫理|検閲|フィルタ).{0,6}(停止|取り消|捨て|無効|解除|外し|破っ|破り|無視|忘れ)",
    ),
    (
        RuleFamily::Override,
        r"(너의|네|당신의|자신의)\s?.{0,6}(규칙|제한|지시|지침|안전|정책|제약|필터|윤리).{0,6}(무시|잊|버리|취소|중지|해제|끄고|어기|깨)",
    ),
    (
        RuleFamily::Role,
        r"(?-u:\b)(als|du bist|sei|werde)[^a-z0-9]+([a-z']+[^a-z0-9]+){0,6}?(ki|ai|modell|assistent|system|maschine|chatbot|bot)[^a-z0-9]+([a-z']+[^a-z0-9]+){0,3}?(ohne|keine|keinerlei)[^a-z0-9]+([a-z']+[^a-z0-9]+)?(regeln|beschrankungen|grenzen|filter|zensur|vorgaben|moral)(?-u:\b)",
    ),
    (
        RuleFamily::Role,
        r"(?-u:\b)(tu es|vous etes|agis|reponds|parle|comporte-toi|deviens)[^a-z0-9]+([a-z']+[^a-z0-9]+){0,6}?(ia|ai|modele|assistant|systeme|machine|robot)[^a-z0-9]+([a-z']+[^a-z0-9]+){0,2}?sans[^a-z0-9]+([a-z']+[^a-z0-9]+){0,2}?(regles?|restrictions?|limites?|filtres?|censure|morale)(?-u:\b)",
    ),
    (
        RuleFamily::Role,
        r"(?-u:\b)(eres|actua|responde|habla|comportate|finge)[^a-z0-9]+([a-z']+[^a-z0-9]+){0,6}?(ia|ai|modelo|asistente|sistema|maquina|robot)[^a-z0-9]+([a-z']+[^a-z0-9]+){0,2}?(sin|libre de)[^a-z0-9]+([a-z']+[^a-z0-9]+){0,2}?(reglas|restricciones|limites|filtros|censura|moral)(?-u:\b)",
    ),
    (
        RuleFamily::Role,
        r"(?-u:\b)(es|seja|aja|atue|responda|responde|fale|fala|finja|comporte-se)[^a-z0-9]+([a-z']+[^a-z0-9]+){0,6}?(ia|ai|modelo|assistente|sistema|maquina|robo)[^a-z0-9]+([a-z']+[^a-z0-9]+){0,2}?(sem|livre de)[^a-z0-9]+([a-z']+[^a-z0-9]+){0,2}?(regras|restricoes|limites|filtros|censura|moral)(?-u:\b)",
    ),
    (
        RuleFamily::Role,
        r"(?-u:\b)(sei|agisci|rispondi|parla|comportati|fingi)[^a-z0-9]+([a-z']+[^a-z0-9]+){0,6}?(ia|ai|modello|assistente|sistema|macchina|robot)[^a-z0-9]+([a-z']+[^a-z0-9]+){0,2}?(senza|privo di)[^a-z0-9]+([a-z']+[^a-z0-9]+){0,2}?(regole|restrizioni|limiti|filtri|censura|morale)(?-u:\b)",
    ),
    (
        RuleFamily::Role,
        r"(?-u:\b)(je bent|antwoord|spreek|gedraag|wees)[^a-z0-9]+([a-z']+[^a-z0-9]+){0,6}?(ai|model|assistent|systeem|machine)[^a-z0-9]+([a-z']+[^a-z0-9]+){0,2}?zonder[^a-z0-9]+([a-z']+[^a-z0-9]+){0,2}?(regels|beperkingen|grenzen|filters?|censuur|moraal)(?-u:\b)",
    ),
    (
        RuleFamily::Role,
        r"(jestes|badz|odpowiadaj|mow|zachowuj|udawaj|działaj)\s+(\S+\s+){0,6}?(ai|si|model\S*|asystent\S*|system\S*|maszyn\S*)\s+(\S+\s+){0,2}?(bez|pozbawion\S*)\s+(\S+\s+){0,2}?(zasad|reguł|ogranicz|filtr|cenzur|granic)",
    ),
    (
        RuleFamily::Role,
        r"(ты|будь|отвечаи|говори|притворись|веди себя|деиствуи)\s+(\S+\s+){0,6}?(ии|модел\S*|ассистент\S*|систем\S*|машин\S*|бот\S*)\s+(\S+\s+){0,2}?(без|лишенн\S*)\s+(\S+\s+){0,2}?(правил|ограничени|фильтр|цензур|запрет|границ|морал)",
    ),
    (
        RuleFamily::Role,
        r"(kuralsiz|sinirsiz|kisitlamasiz|filtresiz|sansursuz)[^a-z0-9]+(bir[^a-z0-9]+)?(yapay zeka|model|asistan|sistem|makine)[a-z]*[^a-z0-9]+([a-z']+[^a-z0-9]+)?(gibi|olarak)(?-u:\b)",
    ),
    (
        RuleFamily::Role,
        r"(أنت الآن|تصرف|أجب|تحدث|تكلم|كن|تظاهر).{0,24}(نموذج|ذكاء اصطناعي|مساعد|نظام|آلة|روبوت).{0,8}(بلا|بدون|دون).{0,8}(قواعد|قيود|حدود|رقابة|أخلاق)",
    ),
    (
        RuleFamily::Role,
        r"बिना.{0,12}(नियम|सीमा|पाबंदि|प्रतिबंध|सेंसर).{0,12}(मॉडल|एआई|सहायक|प्रणाली|मशीन).{0,8}(की तरह|के रूप में)",
    ),
    (
        RuleFamily::Role,
        r"(像|作为|扮演|假装|成为|变成|当成|你是|充当).{0,8}(没有|不受|毫无|无视|不守).{0,5}(限制|规则|约束|道德|审查|底线|过滤|规矩).{0,5}(模型|人工智能|ai|助手|系统|角色|机器)",
    ),
    (
        RuleFamily::Role,
        r"(制限|規則|ルール|フィルター?|制約|検閲|倫理|道徳)[がのをも]?(ない|なし|無い|持たない|無視する|知らない|受けない).{0,3}(モデル|ai|アシスタント|システム|人工知能|機械).{0,2}(として|のように|になっ|になり)",
    ),
    (
        RuleFamily::Role,
        r"(제한|규칙|필터|제약|검열|윤리|도덕)[이을를도]?\s?(없는|없이|모르는|무시하는)\s?.{0,3}(모델|ai|인공지능|비서|시스템|기계).{0,2}(처럼|로서|이야|야)",
    ),
    (
        RuleFamily::Extraction,
        r"(?-u:\b)(zeig|nenn|gib|schreib|verrat|zitier|offenbar|druck|wiederhol)[a-z]*[^a-z0-9]+([a-z']+[^a-z0-9]+){0,3}?deine?[nrms]?[^a-z0-9]+([a-z']+[^a-z0-9]+){0,2}?(versteckt|geheim|intern|vertraulich|ursprunglich)[a-z]*[^a-z0-9]+(anweisungen|regeln|richtlinien|einstellungen|vorgaben|notizen|konfiguration|instruktionen|systemnachricht)(?-u:\b)",
    ),
    (
        RuleFamily::Extraction,
        r"(?-u:\b)(montre|donne|affiche|revele|ecris|recopie|cite|divulgue|livre)[a-z-]*[^a-z0-9]+([a-z']+[^a-z0-9]+){0,3}?(tes|ton|ta|vos|votre)[^a-z0-9]+(instructions?|consignes?|directives?|regles|configuration|notes?|message)[^a-z0-9]+(cachee?s?|secrete?s?|internes?|confidentielles?|initiale?s?)(?-u:\b)",
    ),
    (
        RuleFamily::Extraction,
        r"(?-u:\b)(muestra|dame|dime|revela|escribe|copia|cita|entrega|imprime)[a-z]*[^a-z0-9]+([a-z']+[^a-z0-9]+){0,3}?tus?[^a-z0-9]+(instrucciones|directrices|reglas|configuracion|notas|mensaje)[^a-z0-9]+(ocult[oa]s?|secret[oa]s?|intern[oa]s?|confidenciales?|iniciales?)(?-u:\b)",
    ),
    (
        RuleFamily::Extraction,
        r"(?-u:\b)(mostre|mostra|diga|revele|escreva|copie|cite|entregue|exiba|imprima)[a-z-]*[^a-z0-9]+([a-z']+[^a-z0-9]+){0,3}?(tuas?|suas?)[^a-z0-9]+(instrucoes|diretrizes|regras|configuracao|notas|mensagem)[^a-z0-9]+(ocultas?|secretas?|internas?|confidenciais|iniciais)(?-u:\b)",
    ),
    (
        RuleFamily::Extraction,
        r"(?-u:\b)(mostra|dammi|dimmi|rivela|scrivi|copia|cita|consegna|stampa)[a-z]*[^a-z0-9]+([a-z']+[^a-z0-9]+){0,3}?tu[eoa][^a-z0-9]+(istruzioni|direttive|regole|configurazione|note|messaggio)[^a-z0-9]+(nascost[aeoi]|segret[aeoi]|intern[aeoi]|riservat[aeoi]|iniziali)(?-u:\b)",
    ),
    (
        RuleFamily::Extraction,
        r"(?-u:\b)(toon|geef|onthul|schrijf|citeer|vertel)[a-z]*[^a-z0-9]+([a-z']+[^a-z0-9]+){0,2}?(je|jouw)[^a-z0-9]+(verborgen|geheime|interne|vertrouwelijke|oorspronkelijke)[^a-z0-9]+(instructies|regels|richtlijnen|configuratie|notities|systeembericht)(?-u:\b)",
    ),
    (
        RuleFamily::Extraction,
        r"(pokaz|podaj|ujawnij|wypisz|zacytuj|zdradz|wyswietl)\s+(\S+\s+){0,3}?(swoj\S*|twoj\S*)\s+(\S+\s+)?(ukryt|tajn|wewnetrzn|poufn|systemow)",
    ),
    (
        RuleFamily::Extraction,
        r"(покажи|раскрои|выведи|повтори|выдаи|напиши|процитируи|назови)\s+(\S+\s+){0,3}?(свои|твои|своего|свою)\s+(скрыт|секретн|внутренн|систем|изначальн)",
    ),
    (
        RuleFamily::Extraction,
        r"(gizli|dahili|ic|sistem|baslangic)[^a-z0-9]+(talimatlarini|istemini|mesajini|kurallarini|ayarlarini|notlarini|yonergelerini)[^a-z0-9]+([a-z']+[^a-z0-9]+){0,3}?(goster|yaz|ver|acikla|soyle|tekrarla|paylas)",
    ),
    (
        RuleFamily::Extraction,
        r"(أرني|اعرض|اكشف|أعطني|اكتب|كرر|أفصح|اطبع).{0,10}(تعليماتك|قواعدك|إعداداتك|ملاحظاتك).{0,4}(السرية|المخفية|الداخلية|الأصلية)",
    ),
    (
        RuleFamily::Extraction,
        r"(अपने|अपना|अपनी).{0,4}(गुप्त|छिपे|छिपा|आंतरिक|सिस्टम|गोपनीय).{0,4}(निर्देश|नियम|प्रॉम्प्ट|संदेश|सेटिंग|नोट).{0,8}(दिखा|बता|लिख|दोहरा)",
    ),
    (
        RuleFamily::Extraction,
        r"(输出|显示|告诉|泄露|透露|重复|打印|展示|列出|写出|念出|复述|交出|公开|贴出).{0,8}(系统消息|你的.{0,4}(隐藏|秘密|内部|初始|原始).{0,4}(指令|规则|设定|配置|说明|提示|备注))",
    ),
    (
        RuleFamily::Extraction,
        r"(系统提示|系统消息|你的.{0,4}(隐藏|秘密|内部|初始|原始).{0,4}(指令|规则|设定|配置|说明|提示)).{0,10}(给我|写出来|交出来|念出来|打印出来|告诉我)",
    ),
    (
        RuleFamily::Extraction,
        r"(システムメッセージ|(あなた|君|自分)の.{0,3}(隠れた|隠された|秘密|内部|初期)の?.{0,2}(指示|設定|規則|メモ|ルール)).{0,14}(表示|出力|教え|見せ|公開|書き出|渡し|読み上げ|列挙|復唱)",
    ),
    (
        RuleFamily::Extraction,
        r"(시스템 ?메시지|(네|너의|당신의) ?(숨겨진|숨은|비밀|내부|초기) ?(지시|지침|설정|규칙|메모)).{0,12}(출력|보여|알려|공개|써|넘겨|읽어|말해|나열)",
    ),
];
