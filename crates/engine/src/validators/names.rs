//! Given names and surnames that are common somewhere: enough to tell a person from other capitals, not to know
//! everybody. Names are in lower case without accents, in order; words that are as common otherwise are left out.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Whether the word is a known given name, in any case of letters and with or without accents.
pub(super) fn is_given(word: &str) -> bool {
    static NAMES: LazyLock<HashSet<&str>> = LazyLock::new(|| GIVEN.split(' ').collect());
    NAMES.contains(plain(word).as_str())
}

/// The same for surnames.
pub(super) fn is_surname(word: &str) -> bool {
    static NAMES: LazyLock<HashSet<&str>> = LazyLock::new(|| SURNAMES.split(' ').collect());
    NAMES.contains(plain(word).as_str())
}

/// In lower case, without accents.
fn plain(word: &str) -> String {
    word.chars().flat_map(char::to_lowercase).map(unaccented).collect()
}

/// The letter that one with an accent is spelled with where there is none.
fn unaccented(letter: char) -> char {
    match letter {
        'à'..='å' | 'ā' | 'ă' | 'ą' => 'a',
        'ç' | 'ć' | 'č' => 'c',
        'ď' | 'đ' => 'd',
        'è'..='ë' | 'ē' | 'ė' | 'ę' | 'ě' => 'e',
        'ğ' => 'g',
        'ì'..='ï' | 'ī' | 'ı' => 'i',
        'ł' => 'l',
        'ñ' | 'ń' | 'ň' => 'n',
        'ò'..='ö' | 'ø' | 'ō' | 'ő' => 'o',
        'ř' => 'r',
        'ś' | 'ş' | 'š' | 'ș' => 's',
        'ť' | 'ț' => 't',
        'ù'..='ü' | 'ū' | 'ů' | 'ű' => 'u',
        'ý' | 'ÿ' => 'y',
        'ź' | 'ż' | 'ž' => 'z',
        other => other,
    }
}

/// Of women and men.
const GIVEN: &str = "\
    aaron abdul abdullah abigail adam adele adrian adriana agata agnes agnieszka ahmed ahmet aicha aiko aino \
    akira alain alan alba albert alberto alejandra alejandro aleksander aleksandra alena alessandra \
    alessandro alex alexander alexandra alexandre alexandru alexis alfred ali alice alicia alina alison \
    amanda amber amelia amina amir amit amy ana anastasia anders andre andrea andreas andreea andrei andres \
    andrew andrey andrzej angela angelica angelika anita anja anna anne annette annika antje anton antonia \
    antonio antti arjun arne arthur artur asha ashley astrid audrey august ayse aziz barbara bartosz \
    beatrice beatriz ben benedikt benjamin bernard bernd bertrand beth bianca birgit bjorn bogdan bozena \
    brad bradley brandon brenda brian bridget britta brittany bruce bruno bryan caitlin camila camille \
    candice carina carl carla carlos carmen carol carolina caroline catarina catherine cathy cecilia celine \
    chad chantal charles charlotte chen cheryl chiara chloe chris christian christina christine christoph \
    christophe christopher cindy claire clara claudia claudio clement colin connor constantin corinna craig \
    cristina cynthia dagmar daisuke daisy damian damien dan daniel daniela daniele danielle darren david \
    dawn debbie deborah deepak dennis derek diana diane diego dieter dimitri dirk dmitri dmitry dominic \
    dominik dominique donald donna doris dorothy douglas dusan dylan edith edoardo eduard eduardo edward \
    edyta eileen elena eleni elif elisa elisabeth elizabeth ella ellen elsa emil emilia emilie emily emir \
    emma emre enrico enrique eric erik erika erin ernesto esther ethan eugene eva evelyn ewa fabian fabio \
    fatima fatma federica federico felipe felix fernanda fernando filip fiona florence florian frances \
    francesca francesco francisco francois frank franz frederic frederik friedrich fritz gabriel gabriela \
    gabriele gabriella gareth gary gemma geoffrey george georgios gerald gerard gerhard gertrud gianluca \
    gianni gilbert giorgio giovanni giulia giuseppe gladys gloria gonzalo gordon grace graham grzegorz guido \
    guillaume gunter gustav guy hana hanna hannah hans harald harold harry haruto hasan hassan heather \
    hector heidi heike heinrich heinz helen helena helga helmut hendrik henri henrik henry herbert hiroshi \
    holger holly horst howard hugo hussein ian ibrahim ida igor ilona ilse imran ines inge ingrid irena \
    irene irina iris isabel isabella isabelle ismail istvan ivan ivana iwona jack jackie jacob jacqueline \
    jacques jake jakob jakub james jamie jan jana jane janet janina janine janusz jaroslav jasmin jason \
    javier jean jeanne jeff jeffrey jelena jennifer jenny jens jeremy jerome jerzy jesper jesse jessica \
    jesus jill jim jimmy jiri joachim joan joana joanna joanne joao joel johan johanna johannes john johnny \
    jon jonas jonathan jordan jorge jose josef josefine joseph josephine joshua joyce juan judith judy jukka \
    julia julian juliana julie julien juliette june jurgen justin justyna kai kamil karel karen karim karin \
    karl karla karolina karsten katarina katarzyna kate katharina katherine kathleen kathryn kathy katja \
    katrin kayla keith kelly ken kenji kenneth kerstin kevin khalid kim kimberly kirsten klaus kristen \
    kristian kristin kristina krystyna krzysztof kurt kyle larry lars laura lauren laurence laurent lea leah \
    leena lena leo leon leonardo leonie leslie liam lidia lillian lily linda lisa lise logan lorenzo lori \
    louis louise luca lucas lucia luciana lucie lucy luigi luis luisa lukas lukasz lydia lynn maciej madison \
    magda magdalena mai maja malgorzata manfred manuel manuela marc marcel marcela marcin marco marcos \
    marcus marek margaret margarita maria mariana marianne marie marija marilyn marina mario marion marius \
    mark marko markus marta martha martin martina martine mary mateo mateusz mathias mathieu mathilde matt \
    matteo matthew matthias maureen maurice mauricio max maxim maximilian maya megan mehmet mei melanie \
    melissa mercedes mia michael michaela michal michel michele michelle miguel mihai mika mikael mike \
    mikhail milan milos miriam mohamed mohammad mohammed mona monica monika monique morgan moritz muhammad \
    mustafa nadia nadine nancy naomi natalia natalie natasha nathalie nathan neil nicholas nick nicola \
    nicolas nicole niels nigel nikhil nikita niklas nikola nikolai nina noah noel nora norbert norma nuno \
    olaf ole oleg olena olga oliver olivia olivier omar oscar oskar otto pablo pamela paola paolo pascal \
    patricia patrick patrizia patrycja paul paula pauline paulo pavel pawel pedro peggy penelope per peter \
    petr petra philip philipp philippe phillip phyllis pierre pietro piotr priya rachel rafael rainer raj \
    rajesh ralf ralph ramon randy raphael raquel raul ravi raymond rebecca regina reinhard renata renate \
    rene ricardo richard rick rita robert roberta roberto robin rodrigo roger roland rolf romain roman \
    ronald rosa rosemary roxana roy ruben rudolf russell ruth ryan sabina sabine sabrina sakura sally salma \
    salvatore samantha samir samuel sandra sanjay sara sarah sasha scott sean sebastian serena serge sergei \
    sergey sergio shane shannon sharon shaun sheila shirley sigrid silke silvia simon simona simone sofia \
    sofie sonia sonja sophia sophie stacy stanislaw stefan stefania stefano steffen stella stephan stephanie \
    stephen steve steven stuart sue sunil susan susanna susanne suzanne sven svetlana sylvia sylvie tadeusz \
    takashi tamara tanja tanya tara tatiana ted teresa terry thea theo theodore theresa therese thierry \
    thomas thorsten tiffany tim timothy tina tobias todd tom tomas tomasz tommaso tony torsten tracy travis \
    trevor tristan ulrich ulrike ursula ute uwe valentin valentina valeria valerie vanessa vera veronica \
    veronika victor victoria vijay viktor viktoria vincent vincenzo viola violet virginia vittorio vivian \
    vladimir waldemar walter wanda wayne wendy werner wilhelm willem william wioletta wojciech wolfgang \
    xavier yannick yasmin yasmine yoko yolanda yuki yuri yusuf yvette yvonne zachary zbigniew zoe zofia \
    zoltan zuzana";

/// Of families.
const SURNAMES: &str = "\
    abbott abdullah acosta adams aguilar ahmed akhtar alexander ali allen almeida alonso alvarez alves \
    anders andersen anderson andersson andrews antonov araujo armstrong arnold arora baker bakker balogh \
    banks barbieri barnes barros bauer baumann beck becker bell bennett benoit berg berger bergman bernard \
    bianchi black blanc bos bosch boyer braun brooks brown bruno bryant burns butler campbell carlson \
    carlsson carter carvalho castillo castro chan chang chapman chavez chen cheng chevalier christensen \
    clark clarke cohen cole coleman collins conti contreras cook cooper costa cox crawford cruz davies davis \
    delgado deluca demir dias diaz dietrich dijkstra dixon dubois dumont dunn dupont durand dvorak edwards \
    ellis eriksen eriksson esposito evans fernandes fernandez ferrari ferreira fischer fisher flores \
    fontaine ford foster fournier fox franco francois frank fraser freeman friedrich fuchs fujita garcia \
    gardner garnier gauthier gibson girard gomes gomez goncalves gonzales gonzalez gordon graham grant gray \
    greco green griffin gruber guerrero gupta gustafsson gutierrez haas hall hamilton hansen hansson harris \
    harrison hart hartmann hasan hassan hayes heinrich hernandez herrera hill hoffmann hofmann holm holmes \
    horak horvat horvath howard huang huber hughes hunt hunter hussain ibrahim ito ivanov ivanova jackson \
    jacobs jain jakobsen james jankowski jansen janssen jansson jenkins jensen jimenez johansen johansson \
    johnson johnston jones jonsson jordan jorgensen joseph jovanovic jung kaiser kaminski kang kaplan \
    karlsson kato kaur kaya keller kelley kelly kennedy khan kim king klein knight kobayashi koch kohler \
    kovac kovacs kowalczyk kowalski kozlov kraus krause kristensen kruger kuhn kumar kuznetsov lambert lang \
    larsen larsson laurent lee lefebvre lehmann leroy lewandowski lewis li lin lind lindberg lindqvist liu \
    lombardi long lopes lopez lorenz ludwig lund maier mancini marino marques marshall martin martinez \
    martins mason mayer mccarthy mcdonald medina mehta meier meijer mendes mendez mendoza mercier meyer \
    michel mikkelsen miller mills mitchell mohamed molina moore morales moreau moreira moreno moretti morgan \
    morris morrison mueller mukherjee muller murphy murray myers nagy nakamura navarro nelson neumann newman \
    nguyen nielsen nilsen nilsson novak nowak nunes obrien oliveira olsen olsson ortega ortiz owens ozturk \
    palmer parker patel patil pavlov pedersen pereira perez perkins perrin persson peters petersen peterson \
    petrov petrovic pettersson pham phillips pinto popescu popov powell price quinn ramirez ramos rasmussen \
    reed reid reyes reynolds ribeiro ricci richard richards richardson richter rinaldi rios rivera rizzo \
    robert roberts robertson robinson rocha rodrigues rodriguez rogers romano romero rose ross rossi \
    rousseau roux roy ruiz russell russo ryan sahin salazar sanchez sanders santiago santoro santos sato \
    sauer saunders schmid schmidt schmitt schmitz schneider scholz schroder schubert schulte schultz schulz \
    schumacher schuster schwarz scott serrano shah sharma shaw shevchenko silva simmons simon simpson singh \
    smirnov smit smith soares sokolov sorensen soto sousa souza stein stephens stevens stewart stone suarez \
    sullivan suzuki svensson svoboda szabo takahashi tanaka taylor teixeira thomas thompson torres toth tran \
    tucker turner ueda vargas vasquez vega vidal visser vogel volkov wagner walker wallace walsh walter wang \
    ward warren watanabe watson weaver webb weber weiss wells west white williams williamson wilson winkler \
    winter wisniewski wojcik wolf wood woods wright wu yadav yamada yamamoto yang yilmaz young yu zhang zhao \
    zhou ziegler zielinski zimmermann";
