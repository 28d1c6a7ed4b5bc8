// Responses of admission webhooks, and the patches in them.
#include "controlplane/apiserver/admission/webhook/patch.h"
#include "controlplane/apiserver/admission/webhook/review.h"
#include "lib/api/codec/codec.h"
#include "tests/fuzz/fuzz.h"

namespace keelson::fuzz {
namespace {

using namespace apiserver::webhook;

// A patch is refused, or gives an object of the same kind that can be written again.
void Apply(const std::string& text) {
  Result<boost::json::value> patch = ParsePatch(text);
  if (!patch) return;
  corev1::Pod pod;
  pod.mutable_metadata()->set_name("p");
  pod.mutable_spec()->add_containers()->set_name("c");
  const api::ResourceInfo& row = api::ResourceOf<corev1::Pod>();
  apiserver::AdmissionNotes notes;
  auto patched = ApplyPatch(pod, api::EncodeJson(pod, row.Gvk()), *patch, row, &notes);
  if (!patched) return;
  corev1::Pod copy;
  FUZZ_CHECK(api::DecodeJson(api::EncodeJson(**patched), copy), text);
  FUZZ_CHECK(api::EncodeRaw(**patched) == api::EncodeRaw(copy), text);
}

void AdmissionReview(std::string_view text) {
  for (const char* version : {"v1", "v1beta1"}) {
    const Question question{version, "u", ""};
    for (bool mutating : {false, true}) {
      Result<Answer> answer = ReadAnswer(text, question, mutating);
      if (!answer) continue;
      FUZZ_CHECK(mutating || answer->patch.empty(), text);
      if (!answer->patch.empty()) Apply(answer->patch);
    }
  }
}

const Registration kReview("admission_review", AdmissionReview);

}  // namespace
}  // namespace keelson::fuzz
