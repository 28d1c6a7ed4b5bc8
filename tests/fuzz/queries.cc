// URL query parameters, and quantities.
#include "controlplane/storage/continue_token.h"
#include "lib/api/quantity.h"
#include "lib/api/selector.h"
#include "tests/fuzz/fuzz.h"

namespace keelson::fuzz {
namespace {

void LabelSelector(std::string_view text) {
  auto selector = api::LabelSelector::Parse(text);
  if (!selector) return;
  std::string printed = selector->ToString();
  auto again = api::LabelSelector::Parse(printed);
  FUZZ_CHECK(again, printed);
  FUZZ_CHECK(again->ToString() == printed, printed);
  api::LabelMap labels;
  labels["app"] = "web";
  labels["x"] = "7";
  FUZZ_CHECK(selector->Matches(labels) == again->Matches(labels), printed);
}

void FieldSelector(std::string_view text) {
  auto selector = api::FieldSelector::Parse(text);
  if (!selector) return;
  std::string printed = selector->ToString();
  auto again = api::FieldSelector::Parse(printed);
  FUZZ_CHECK(again, printed);
  FUZZ_CHECK(again->ToString() == printed, printed);
}

void ContinueToken(std::string_view text) {
  auto token = storage::DecodeContinue(text);
  if (!token) return;
  auto again = storage::DecodeContinue(storage::Encode(*token));
  FUZZ_CHECK(again, text);
  FUZZ_CHECK(again->revision == token->revision && again->start == token->start, text);
}

void Quantity(std::string_view text) {
  auto amount = api::Amount::Parse(text);
  if (!amount) return;
  std::string printed = amount->ToString();
  auto again = api::Amount::Parse(printed);
  FUZZ_CHECK(again, printed);
  // Binary forms have no fractions: they are rounded up.
  FUZZ_CHECK(*again >= *amount || *amount < api::Amount(), std::string(text) + " -> " + printed);
  FUZZ_CHECK(again->ToString() == printed, std::string(text) + " -> " + printed);
}

const Registration kLabels("label_selector", LabelSelector), kFields("field_selector", FieldSelector),
    kToken("continue_token", ContinueToken), kQuantity("quantity", Quantity);

}  // namespace
}  // namespace keelson::fuzz
