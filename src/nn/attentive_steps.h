// Recurrent decoders that attend at every step: by the fused ops attentive_gru() and attentive_lstm() where these compute
// the attention's spec, and otherwise one step at a time, which is slower, and right for everything that DecoderAttention
// takes.
#pragma once

#include "nn/decoder_attention.h"

namespace fovea::nn {

// Either way, as DecoderAttention::fused() says. What the steps of a sentence draw is rewarded by the loss of that
// sentence. Predicted places narrow the runs of the LSTM.
AttentiveStates attentive_gru(const AttentiveGru& decoder, const KeyRuns& runs,
                              const DecoderAttention& attention, Context& context, bool want_weights = false);
FedStates attentive_lstm(const AttentiveLstm& decoder, KeyRuns& runs, const DecoderAttention& attention,
                         Context& context, bool want_weights = false);

// As attentive_gru(), by steps.
AttentiveStates attentive_gru_by_steps(const AttentiveGru& decoder, const KeyRuns& runs,
                                       const DecoderAttention& attention, Context& context,
                                       bool want_weights = false);

// As attentive_lstm(), by steps; predicted places narrow the runs.
FedStates attentive_lstm_by_steps(const AttentiveLstm& decoder, KeyRuns& runs,
                                  const DecoderAttention& attention, Context& context,
                                  bool want_weights = false);

// An LSTM that attends before every step, and multiplies the context by a gate (Xu et al. 2015):
//
//   seen = attention(h),  z = sigmoid(gate h + b) seen,  h, c = LSTM(products + context z + state h, c)
struct GatedLstm {
  Var products;                      // [steps, 4 H]: W x + b of the input
  Var h, c;                          // first states: [sentences, H]
  Var keys;                          // [keys, d]
  Var values;                        // [keys, D + E]
  Var state;                         // [4 H, H]
  Var context;                       // [4 H, D]
  Var query_weight{}, query_bias{};  // [d, H] and [d]; undefined: the state itself is the query
  Var gate_weight{}, gate_bias{};    // [1, H] and [1]; undefined: no gate
  RunScore score{};
  Selection selection = soft();  // soft: by the fused kernel
  bool trained_weights = false;  // soft alone, without E: the weights are given as `extra`
};
struct GatedStates {
  Var states;   // [steps, H]
  Var context;  // [steps, D]: z
  // [steps, E]: what was seen of the values' last E columns, without the gate; or the weights, [steps, longest run],
  // where trained_weights are wanted; undefined for none
  Var extra{};
  Var entropy{};          // [steps, 1]: hard, training: of the distributions drawn from
  Tensor weights, gates;  // [steps, longest run] and [steps], where wanted
};
GatedStates gated_lstm_by_steps(const GatedLstm& decoder, const KeyRuns& runs, Context& context,
                                bool want_weights = false);

}  // namespace fovea::nn
