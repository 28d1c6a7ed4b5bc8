#include "lib/http/stream.h"

#include <atomic>

namespace keelson::http {
namespace {

// Owned by the pending callbacks; the last one releases both streams.
struct Joint {
  std::unique_ptr<Stream> sides[2];
  std::function<void()> done;
  std::atomic<int> open{2};
  std::atomic<bool> finished{false};

  void Finish() {
    if (finished.exchange(true)) return;
    sides[0]->Close();
    sides[1]->Close();
    if (done) done();
  }
};

void Pump(const std::shared_ptr<Joint>& joint, int from) {
  joint->sides[from]->AsyncRead([joint, from](Result<std::string> data) {
    if (!data) return joint->Finish();
    Stream& to = *joint->sides[1 - from];
    if (data->empty()) {
      to.ShutdownWrite();
      if (joint->open.fetch_sub(1) == 1) joint->Finish();
      return;
    }
    to.AsyncWrite(std::move(*data), [joint, from](Result<> written) {
      if (!written) return joint->Finish();
      Pump(joint, from);
    });
  });
}

}  // namespace

void Splice(std::unique_ptr<Stream> a, std::unique_ptr<Stream> b, std::function<void()> done) {
  auto joint = std::make_shared<Joint>();
  joint->sides[0] = std::move(a);
  joint->sides[1] = std::move(b);
  joint->done = std::move(done);
  Pump(joint, 0);
  Pump(joint, 1);
}

}  // namespace keelson::http
