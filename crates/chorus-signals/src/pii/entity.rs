//! The kinds of personal data and secrets that can be found, and their names.
//!
//! It knows no text and no rule. The names are those of the v0.3 contract (its 17 types) and of Presidio for the rest, so
//! that existing allow-lists mean what they meant. **Invariant:** every kind has one name, and the name reads back.

/// A kind of personal data, or of secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Entity {
    /// An age in years.
    Age,
    /// A payment card's number.
    CreditCard,
    /// A date or a time.
    DateTime,
    /// A web address or a host name.
    DomainName,
    /// An e-mail address.
    EmailAddress,
    /// A country, region or city.
    Gpe,
    /// An international bank account number.
    IbanCode,
    /// An IP address, version 4 or 6.
    IpAddress,
    /// A nationality, religion or political group.
    Nrp,
    /// A company, institution or other body.
    Organization,
    /// A person's name.
    Person,
    /// A telephone number.
    PhoneNumber,
    /// A street address, or a part of one.
    StreetAddress,
    /// A form of address or a job title.
    Title,
    /// A driving licence of a state of the USA.
    UsDriverLicense,
    /// A social security number of the USA.
    UsSsn,
    /// A postal code.
    ZipCode,
    /// A hardware address of a network card.
    MacAddress,
    /// A taxpayer number of the USA for people without a social security number.
    UsItin,
    /// A passport of the USA.
    UsPassport,
    /// A bank account of the USA.
    UsBankNumber,
    /// A bank's routing number of the USA.
    AbaRoutingNumber,
    /// A care provider's number of the USA.
    UsNpi,
    /// A prescriber's registration (DEA) of the USA.
    MedicalLicense,
    /// A patient's number of the United Kingdom.
    UkNhs,
    /// A national insurance number of the United Kingdom.
    UkNino,
    /// A tax identity of Germany.
    DeTaxId,
    /// A social security number of France.
    FrNir,
    /// An identity card of Spain.
    EsNif,
    /// A foreigner's identity of Spain.
    EsNie,
    /// A fiscal code of Italy.
    ItFiscalCode,
    /// A person's number of Poland.
    PlPesel,
    /// A resident's number of India.
    InAadhaar,
    /// A tax identity of India.
    InPan,
    /// A social insurance number of Canada.
    CaSin,
    /// A tax file number of Australia.
    AuTfn,
    /// A taxpayer's number of Brazil.
    BrCpf,
    /// A resident identity of China.
    CnId,
    /// A person's number of Sweden.
    SePersonnummer,
    /// A wallet's address.
    Crypto,
    /// A key of a service.
    ApiKey,
    /// A private key.
    PrivateKey,
    /// A signed token.
    Jwt,
    /// A password, also inside a web address.
    Password,
    /// Another secret: a random token that its context calls one.
    Secret,
}

impl Entity {
    /// Every kind.
    pub const ALL: [Self; 45] = [
        Self::Age,
        Self::CreditCard,
        Self::DateTime,
        Self::DomainName,
        Self::EmailAddress,
        Self::Gpe,
        Self::IbanCode,
        Self::IpAddress,
        Self::Nrp,
        Self::Organization,
        Self::Person,
        Self::PhoneNumber,
        Self::StreetAddress,
        Self::Title,
        Self::UsDriverLicense,
        Self::UsSsn,
        Self::ZipCode,
        Self::MacAddress,
        Self::UsItin,
        Self::UsPassport,
        Self::UsBankNumber,
        Self::AbaRoutingNumber,
        Self::UsNpi,
        Self::MedicalLicense,
        Self::UkNhs,
        Self::UkNino,
        Self::DeTaxId,
        Self::FrNir,
        Self::EsNif,
        Self::EsNie,
        Self::ItFiscalCode,
        Self::PlPesel,
        Self::InAadhaar,
        Self::InPan,
        Self::CaSin,
        Self::AuTfn,
        Self::BrCpf,
        Self::CnId,
        Self::SePersonnummer,
        Self::Crypto,
        Self::ApiKey,
        Self::PrivateKey,
        Self::Jwt,
        Self::Password,
        Self::Secret,
    ];

    /// Its name, as allow-lists and findings write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Age => "AGE",
            Self::CreditCard => "CREDIT_CARD",
            Self::DateTime => "DATE_TIME",
            Self::DomainName => "DOMAIN_NAME",
            Self::EmailAddress => "EMAIL_ADDRESS",
            Self::Gpe => "GPE",
            Self::IbanCode => "IBAN_CODE",
            Self::IpAddress => "IP_ADDRESS",
            Self::Nrp => "NRP",
            Self::Organization => "ORGANIZATION",
            Self::Person => "PERSON",
            Self::PhoneNumber => "PHONE_NUMBER",
            Self::StreetAddress => "STREET_ADDRESS",
            Self::Title => "TITLE",
            Self::UsDriverLicense => "US_DRIVER_LICENSE",
            Self::UsSsn => "US_SSN",
            Self::ZipCode => "ZIP_CODE",
            Self::MacAddress => "MAC_ADDRESS",
            Self::UsItin => "US_ITIN",
            Self::UsPassport => "US_PASSPORT",
            Self::UsBankNumber => "US_BANK_NUMBER",
            Self::AbaRoutingNumber => "ABA_ROUTING_NUMBER",
            Self::UsNpi => "US_NPI",
            Self::MedicalLicense => "MEDICAL_LICENSE",
            Self::UkNhs => "UK_NHS",
            Self::UkNino => "UK_NINO",
            Self::DeTaxId => "DE_TAX_ID",
            Self::FrNir => "FR_NIR",
            Self::EsNif => "ES_NIF",
            Self::EsNie => "ES_NIE",
            Self::ItFiscalCode => "IT_FISCAL_CODE",
            Self::PlPesel => "PL_PESEL",
            Self::InAadhaar => "IN_AADHAAR",
            Self::InPan => "IN_PAN",
            Self::CaSin => "CA_SIN",
            Self::AuTfn => "AU_TFN",
            Self::BrCpf => "BR_CPF",
            Self::CnId => "CN_ID",
            Self::SePersonnummer => "SE_PERSONNUMMER",
            Self::Crypto => "CRYPTO",
            Self::ApiKey => "API_KEY",
            Self::PrivateKey => "PRIVATE_KEY",
            Self::Jwt => "JWT",
            Self::Password => "PASSWORD",
            Self::Secret => "SECRET",
        }
    }

    /// The broader name that an allow-list may use instead, if there is one.
    #[must_use]
    pub fn group(self) -> Option<&'static str> {
        match self {
            Self::Gpe | Self::StreetAddress => Some("LOCATION"),
            Self::DomainName => Some("URL"),
            Self::ApiKey | Self::PrivateKey | Self::Jwt | Self::Password => Some("SECRET"),
            _ => None,
        }
    }

    /// Whether an allow-list's name means this kind; letters of either case.
    #[must_use]
    pub fn is_called(self, name: &str) -> bool {
        let is = |own: &str| own.eq_ignore_ascii_case(name.trim());
        is(self.name()) || self.group().is_some_and(is)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_kind_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = Entity::ALL.iter().map(|entity| entity.name()).collect();
        assert_eq!(names.len(), Entity::ALL.len());
        for entity in Entity::ALL {
            assert!(entity.is_called(&entity.name().to_lowercase()));
        }
        assert!(Entity::Gpe.is_called("LOCATION") && !Entity::Person.is_called("LOCATION"));
        let groups = Entity::ALL.iter().filter_map(|entity| entity.group());
        let allowed: BTreeSet<&str> = chorus_spec::PII_TYPES.into_iter().collect();
        assert_eq!(names.into_iter().chain(groups).collect::<BTreeSet<_>>(), allowed);
    }
}
